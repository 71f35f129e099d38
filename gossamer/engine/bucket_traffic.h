#pragma once
/// BucketTraffic: how the payloads of a bucket get to other workers, and what has come of theirs.

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "gossamer/engine/bucket_state.h"
#include "gossamer/engine/exchange.h"

namespace gossamer {

/// How far a wait goes; each goes further than the one before.
enum class Until {
  arrived,   ///< what was launched has arrived, and the memory that the next update writes is back
  copied,    ///< and what peers lent is copied and theirs again
  returned,  ///< and everything that was lent to them is back; nothing is consumed
};

/// What has come, for the pass that reads it.
struct Arrived {
  std::span<const Piece> pieces;  ///< the plan's, without terms that have not come
  /// By payload: where the buffers of the plan are.
  std::array<std::span<const std::byte* const>, kMaxVectors> buffers;
  std::vector<Interval> journeys;  ///< how long payloads were on their way
  std::int64_t skipped = 0;        ///< neighbours that it goes on without
  DType dtype = DType::f32;

  const std::byte* at(std::size_t payload, const Slice& slice) const;
};

/// Note [Numbers of exchanges]: of step t and stage s of the pattern the number is t · stages + s,
/// so that exchanges that follow each other differ in their tags and take turns with two slots.
///
/// Exchanges are expected and launched in the order of their numbers; one is launched when the one
/// before is finished. A plan must stay until then.
class BucketTraffic {
 public:
  virtual ~BucketTraffic() = default;
  /// Posts the first receives of an exchange, see Note [Receive early].
  virtual void expect(const Plan& plan, std::int64_t number) = 0;
  /// Sends the payloads of an exchange that is expected.
  virtual void launch(const Plan& plan, std::int64_t number,
                      std::span<const PayloadRef> payloads) = 0;
  virtual void wait(Until until) = 0;
  /// What was sent in steps that are done is taken, or the peer is not there, or `deadline` has
  /// passed.
  virtual void wait_until_given(Deadline deadline) = 0;
  /// Whether wait(Until::arrived) would return at once; does what can be done without waiting.
  /// Throws what it would throw, and once peers keep memory beyond `deadline`.
  virtual bool is_ready(Deadline deadline) = 0;
  /// After wait(): what the launched exchange has brought, until finish().
  virtual Arrived arrived() = 0;
  /// What has arrived has been read: gives the launched exchange back.
  virtual void finish() = 0;
};

/// Σ ḡ² of an average, the first payload, that has arrived.
double mean_norm_squared(const Arrived& arrived, WorkerPool* pool);

}  // namespace gossamer
