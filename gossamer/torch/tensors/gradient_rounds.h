#pragma once
/// GradientRounds: one pass after the other, what of the gradients is sent and taken, and when.

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <list>
#include <optional>
#include <string>
#include <vector>

#include "gossamer/engine/overlap.h"
#include "gossamer/torch/tensors/gradient_buckets.h"
#include "gossamer/torch/tensors/gradient_options.h"
#include "gossamer/torch/tensors/gradient_presence.h"
#include "gossamer/torch/tensors/row_average.h"

namespace gossamer {

/// Note [Several averages in one pass]: whoever waits for another worker must have sent all that
/// this worker waits for. The end of a pass is therefore done in rounds, each of which waits for
/// what the one before has launched; autograd calls the first rounds of all averages that the pass
/// has reached before their second ones. So workers may reach them in any order.
class GradientRounds {
 public:
  GradientRounds(const std::vector<AveragedTensor>& tensors, const GradientOptions& options,
                 const Averagers& all);

  /// Begins a pass in step number `step`, in which these tensors travel. Throws std::runtime_error
  /// if an earlier pass has failed: workers may then have sent unlike things.
  void open(std::vector<char> travels, std::size_t step);
  bool is_open() const { return is_open_; }
  bool travels(std::size_t i) const { return own_.travels[i] != 0; }
  /// The gradient of tensor i is there. Throws std::invalid_argument for a second one in a pass.
  void arrive(std::size_t i);
  /// Does the next round; returns whether there is another one. After the last one the means are in
  /// `.grad`.
  bool next();
  /// Does all rounds but without the means: others wait for what this worker sends.
  void drop();

  std::int64_t passes() const { return passes_; }
  /// Before this worker leaves: waits until the others have what it sent in passes that are done.
  void wait_until_given(Deadline deadline);

  double exposed_s() const { return exposed_s_; }
  double hidden_s() const { return hidden_s_; }

 private:
  void choose_buckets();
  std::int64_t number() const;
  std::int64_t round() const { return options_.first_round + static_cast<std::int64_t>(step_); }
  std::int64_t steps_before() const { return all_.lost == nullptr ? -1 : round(); }
  bool do_round();
  void launch_all();
  void launch(std::size_t b);
  PayloadRef payload_of(GradientBucket& bucket);
  void check_layout(std::size_t i) const;
  void write(std::size_t i, const at::Tensor& into) const;
  at::Tensor laid_out(std::size_t i) const;
  ReadPayload reader_of(const GradientBucket& bucket) const;
  void launch_presence();
  void wait_for(FlatAverage& average);
  void settle();
  void reseat(Seating among);
  std::vector<char> collect_presence();
  void collect(std::size_t b, const std::vector<char>& is_there);
  at::Tensor& gradient_for_mean(std::size_t i);
  void read(const GradientBucket& bucket, std::size_t k);
  void read_to_device(GradientBucket& bucket, const std::vector<char>& takes);
  void start_rows();
  void end_pass();
  std::vector<GradientBucket>& buckets() { return kept_.front().buckets; }
  void record(TimelineEvent::Kind kind, std::size_t b) const {
    if (options_.recorder != nullptr) options_.recorder->did(kind, static_cast<int>(b));
  }

  std::vector<std::string> names_;
  std::vector<at::Tensor> tensors_;
  GradientOptions options_;
  Averagers all_;
  std::optional<c10::Stream> out_;   ///< gradients on a device leave it here
  std::list<GradientBuckets> kept_;  ///< the first are those of this pass, or of the last one
  GradientPresence presence_;
  std::vector<char> sparse_;  ///< by tensor: some worker's gradient has been
  std::optional<RowAverage> rows_;

  bool is_new_ = false;  ///< it has come back, and has yet to catch up
  bool is_open_ = false;
  bool is_dropped_ = false;
  int round_ = 0;
  std::size_t step_ = 0;
  std::int64_t passes_before_ = 0;  ///< those before the first one of the step
  GradientSigns own_;
  std::vector<char> arrived_;
  Overlap overlap_;
  std::string failure_;  ///< of an earlier pass

  std::int64_t passes_ = 0;
  double exposed_s_ = 0;
  double hidden_s_ = 0;
};

}  // namespace gossamer
