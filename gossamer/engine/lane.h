#pragma once
/// A Lane: one bucket on its way through the steps: its state, its traffic and its passes.

#include <array>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "gossamer/algo/pattern.h"
#include "gossamer/base/index.h"
#include "gossamer/base/parallel.h"
#include "gossamer/engine/bucket_state.h"
#include "gossamer/engine/bucket_traffic.h"
#include "gossamer/engine/collectives.h"
#include "gossamer/engine/outbox.h"

namespace gossamer {

/// What a pass is run with.
struct PassNumbers {
  std::vector<StepNumbers> groups;  ///< by Segment::group
  WorkerPool* pool = nullptr;       ///< null: the calling thread does it all
  bool measure_distance = false;
};

/// What a combining pass found.
struct Combined {
  double distance = 0;             ///< as the pass measured it; 0 where it was not asked to
  std::int64_t skipped = 0;        ///< neighbours that it went on without
  std::vector<Interval> journeys;  ///< how long payloads were on their way
};

/// Note [Two memories]: with a spare, an update reads x and writes the spare, and the two change
/// places. x then stays as it was while peers read it where it is, until this worker's next update
/// but one writes there: nothing is copied to hand the parameters over. Needs a pattern that sends
/// the parameters after the update, and pays where the transport serves in place.
class Lane {
 public:
  /// `state`: of a bucket that has a spare only where the two memories are to alternate.
  Lane(BucketState state, const EngineOptions& options, Lends lends);

  BucketState& state() { return state_; }
  /// New segments from the next pass on; they must cover the bucket without gaps, in order.
  void set_segments(std::vector<Segment> segments);
  Outbox& outbox() { return outbox_; }
  /// Before the first exchange: how payloads travel from now on.
  void use(std::unique_ptr<BucketTraffic> traffic) { traffic_ = std::move(traffic); }
  BucketTraffic& traffic() { return *traffic_; }

  /// Posts the first receives of an exchange; see Note [Numbers of exchanges].
  void expect(std::shared_ptr<const Plan> plan, std::int64_t number);
  bool expects(std::int64_t number) const { return plan_of(number) != nullptr; }
  /// Sends this bucket's payloads as the plan expected for this exchange says.
  void launch(std::int64_t number);
  /// Whether another exchange of the same step is to follow the one that was launched last.
  bool has_next_stage() const { return stage_of(number_) + 1 < pattern_.stages(); }

  /// What the launched exchange has brought, or what was made in its place.
  Arrived arrived() const;
  /// Within Collectives::settle(): makes the mean of the gradients once more, where there is one.
  void settle_again(Collectives& collectives);

  /// Runs the pattern's local pass; needs the gradient only.
  void prepare(const PassNumbers& numbers);
  /// Runs the pattern's combining pass on what arrived, the middle one where another stage follows,
  /// and gives the exchange back.
  Combined combine(const PassNumbers& numbers);

 private:
  /// What arrived for a range of elements, by payload.
  template <class T>
  struct Sources {
    std::array<std::vector<Source<T>>, kMaxVectors> of;
    std::size_t decoded = 0;       ///< terms that lie decoded in their rooms
    std::size_t first_digest = 0;  ///< of the range
  };

  /// A mean that was made once more, as what arrives is given to a pass.
  struct MeanAgain {
    Vector values;
    Piece piece;
    const std::byte* begin;
  };

  bool changes_by_mixes_only() const;
  int stage_of(std::int64_t number) const { return static_cast<int>(number % pattern_.stages()); }
  const std::shared_ptr<const Plan>& plan_of(std::int64_t number) const {
    return plans_[at(number % 2)];
  }
  template <class T>
  void add_sources(const Work& work, const Arrived& arrived, std::size_t payload,
                   Sources<T>& sources);
  template <class T>
  Mix<T> mix_of(const Work& work, const Arrived& arrived, std::size_t payload, Sources<T>& sources);
  template <class T>
  PassArgs<T> args_of(const Work& work, const PassNumbers& numbers);
  template <class T>
  double sweep(typename Pattern::Pass<T> pass, const PassNumbers& numbers, const Arrived* arrived);

  BucketState state_;
  const Pattern& pattern_;
  const Optimizer& optimizer_;
  Outbox outbox_;
  std::unique_ptr<BucketTraffic> traffic_;
  std::array<std::shared_ptr<const Plan>, 2> plans_;  ///< of expected exchanges, which take turns
  std::int64_t number_ = 0;                           ///< of the exchange that was launched last
  std::deque<Vector> decoded_;                        ///< rooms for coded terms
  std::optional<MeanAgain> again_;                    ///< in place of what has arrived
};

}  // namespace gossamer
