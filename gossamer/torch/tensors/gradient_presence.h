#pragma once
/// GradientPresence: what workers tell each other about their gradients in every pass.

#include <cstdint>
#include <string>
#include <vector>

#include "gossamer/torch/tensors/flat_average.h"

namespace gossamer {

/// By tensor, of one worker, or of any of those whose gradients count in the mean.
struct GradientSigns {
  std::vector<char> is_there;
  std::vector<char> travels;
  std::vector<char> is_sparse;
};

/// Travels by itself and is never coded: next to gradients a codec would lose it.
class GradientPresence {
 public:
  GradientPresence(const Averagers& all, std::vector<std::string> names);

  /// `steps`: that this worker has done.
  void launch(const GradientSigns& own, std::int64_t steps, FlatAverage::Launch launch);
  /// Where the exchange is, for whoever measures it.
  FlatAverage& average() { return average_; }
  /// From the next pass on it is over these.
  void reseat(const Averagers& all);
  /// What any of them has said; after average().wait(). Throws std::invalid_argument, on all of
  /// them alike, where they are in unlike steps or disagree on what travels.
  GradientSigns collect();

 private:
  std::string of_workers(float share) const;
  void check(const float* means) const;
  std::size_t parity(std::int64_t steps) const {
    return 3 * names_.size() + static_cast<std::size_t>(steps % 2);
  }

  Averagers all_;
  std::vector<std::string> names_;
  FlatAverage average_;
  std::int64_t steps_ = 0;
};

}  // namespace gossamer
