#pragma once
/// FlatAverage: one flat array whose mean over workers an exchange makes.

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "gossamer/base/shared_memory.h"
#include "gossamer/engine/collectives.h"
#include "gossamer/engine/exchange_runner.h"
#include "gossamer/engine/plan_book.h"
#include "gossamer/engine/seating.h"
#include "gossamer/torch/tensors/replica.h"
#include "gossamer/transport/memory.h"

namespace gossamer {

/// With whom means are made, and by whom. The runner must outlive its users.
struct Averagers {
  ExchangeRunner* runner = nullptr;
  Seating seating;
  /// Whose rounds give the weights of a mean, W in place of 1/n; nothing: it is over all workers.
  std::optional<Schedule> rounds = std::nullopt;
  /// Whom they are among, which may change between two steps; null: all.
  const Seating* seated = nullptr;
  LostPeers* lost = nullptr;  ///< it goes on without those; null: each one is an error
  /// Where means over all are settled, see Note [Settled means]; null: they are not.
  Collectives* settles = nullptr;
};

/// Note [A mean under way]: use() once, then in every pass: wait_back(), fill `flat`, launch(),
/// wait(), read(), finish(). Where the array is only coded, nobody need fill `flat`, whose memory
/// then stays untouched: launch() reads what it codes. Only launch() of all workers and wait()
/// belong together: what is between them may be anything.
class FlatAverage {
 public:
  FlatAverage() = default;
  /// Of `count` elements.
  FlatAverage(const Averagers& all, DType dtype, std::int64_t count, Codec codec);

  /// Bytes that the array and its scratch take. Scratch of rounds that never repeat is not among
  /// them, and is never shared.
  std::size_t bytes() const { return flat_bytes() + scratch_bytes_; }
  /// Puts both into `memory` of that size, which peers may read in place; else into memory of its
  /// own, with `pins` such as a device writes by itself.
  void use(const std::shared_ptr<const SharedMemory>& shared, std::byte* memory, bool pins = false);

  DType dtype() const { return dtype_; }
  std::int64_t count() const { return count_; }
  const at::Tensor& flat() const { return flat_; }
  bool is_only_coded() const { return is_only_coded_; }

  /// Waits until peers have read what was sent last; then `flat` may change.
  void wait_back();
  /// Before this worker leaves: the same, unless a mean is under way; who is lost does not matter.
  void wait_until_given(Deadline deadline);
  /// Which message of which round it is, and who is told of it: null: nobody.
  struct Launch {
    std::int64_t pass = 0;
    std::int32_t stream = 0;
    std::int64_t steps_before = -1;  ///< as in ExchangeSpec
    std::int64_t round = 0;
    Recorder* recorder = nullptr;
  };
  /// Sends what `flat` holds, or what `when.read` writes, once `when.is_ready`.
  void launch(ExchangeRunner& runner, const Launch& launch, PayloadRef when = {});
  bool is_under_way() const { return is_under_way_; }
  void wait();
  /// After wait(): makes the mean once more, within Collectives::settle().
  void make_again(Collectives& collectives, std::int32_t stream, const ReplicaShare& share);
  /// From the next launch on the mean is over these.
  void reseat(const Averagers& all);
  /// Makes elements [begin, begin + count) of the mean; after wait(), until finish().
  void read(std::int64_t begin, std::int64_t count, void* into) const;
  /// All of it.
  at::Tensor mean() const;
  /// Gives back what peers lent.
  void finish();
  /// From launch until the last payload was there.
  Interval journey() const { return exchange_->journey(); }

 private:
  std::size_t flat_bytes() const {
    return aligned(static_cast<std::size_t>(count_) * size_of(dtype_));
  }

  void mix(const Piece& piece, std::int64_t first, std::int64_t count, std::byte* into) const;
  at::Tensor values_of(const Term& term, std::int64_t first, std::int64_t count) const;

  DType dtype_ = DType::f32;
  std::int64_t count_ = 0;
  Codec codec_ = Codec::fp32;
  at::Tensor flat_;
  std::shared_ptr<PlanBook> plans_;
  LostPeers* lost_ = nullptr;
  std::size_t scratch_bytes_ = 0;
  bool is_only_coded_ = false;
  std::shared_ptr<const Plan> plan_;  ///< of this pass, or of the last one
  std::vector<Piece> pieces_;         ///< its, without what has not come
  at::Tensor again_;                  ///< the mean, where it has been made again; else undefined
  Arena arena_;
  std::shared_ptr<const SharedMemory> shared_;  ///< null: peers get copies
  bool is_under_way_ = false;
  std::shared_ptr<Exchange> exchange_;  ///< of this pass, or of the last one
};

/// Gives averages their memory: one that peers can read where the transport lends it. Returns that,
/// or nothing; then, with `pins`, each has pinned memory of its own.
std::span<std::byte> place(std::span<FlatAverage* const> averages, const Transport& transport,
                           bool pins = false);

}  // namespace gossamer
