#pragma once
/// Outbox: what a bucket sends, where peers can read it, and what its mix is relative to.

#include <array>
#include <cstddef>
#include <span>
#include <vector>

#include "gossamer/base/aligned_bytes.h"
#include "gossamer/engine/bucket_state.h"
#include "gossamer/engine/exchange.h"
#include "gossamer/kernels/digest.h"
#include "gossamer/transport/memory.h"

namespace gossamer {

/// Note [Outboxes]: where the sender copies (Note [Who copies]), and for scattered buckets, a
/// payload is copied once into an outbox, whichever number of peers reads it there. Where peers
/// read in place a bucket has two, which take turns: one may still be read when the next is filled.
/// What leaves coded has none, see put().

/// Note [What was sent]: between two updates the parameters of a scattered bucket belong to the
/// user, who may change them. The mix of x with what neighbours sent, y_j, is then relative to what
/// this worker sent, y_i: x + Σ w_ij (y_j − y_i), which keeps the mean over the workers. To read
/// y_i costs a fifth of a pass. So the copy into the outbox also makes digests of its tiles, and
/// where x still has the same the pass computes (1 − Σ w_ij) x + Σ w_ij y_j.
struct Sent {
  const std::byte* data = nullptr;  ///< null: nothing was sent, or nobody changes it
  std::vector<Digest> digests;      ///< of its works in the order of cut(); empty: none
};

/// A payload that is about to leave.
struct Leaving {
  Payload payload = Payload::parameters;
  std::size_t k = 0;         ///< its place among those of its stage
  std::int64_t number = 0;   ///< of the exchange
  bool is_relative = false;  ///< it travels between two steps, and the user may change it meanwhile
  const Plan* plan = nullptr;
};

/// How many digests a range has, and how long it is where coded terms are decoded for the pass.
std::size_t digests_of(const Work& work);
std::int64_t longest_work(const Plan& plan);

/// Of one bucket, which must outlive it.
class Outbox {
 public:
  /// With Late::skip payloads are copied as they are sent.
  Outbox(const BucketState& state, const EngineOptions& options, Lends lends);

  /// Whether peers read its memory, which then must be of the kind that is lent.
  bool is_lent() const { return turns_ > 1; }
  /// How much memory it needs; 0: none.
  std::size_t bytes() const { return most_ * turns_ * room(); }
  /// The owner keeps the memory where it is lent.
  void use(const Memory& memory) { memory_ = memory; }

  /// Copies a payload to where peers can read it, if it is not there. Of a scattered bucket it is
  /// copied whole where the mix is relative to it. Nothing is copied where nobody exchanges
  /// anything, or where it leaves coded and the mix keeps all of x: then it is relative to what the
  /// code says.
  PayloadRef put(const Leaving& leaving);
  const Sent& sent(std::size_t k) const { return sent_[k]; }
  /// The bucket is cut in other places now.
  void forget_digests();

 private:
  std::size_t room() const { return aligned(bytes_of(state_.bucket)); }
  std::byte* box(const Leaving& leaving) const;
  PayloadRef hand_over(const Leaving& leaving) const;
  PayloadRef gather(const Leaving& leaving);
  PayloadRef copy_out(const Leaving& leaving);
  void remember(const Leaving& leaving);

  const BucketState& state_;
  const Late late_;
  std::size_t most_ = 0;  ///< payloads at a time; 0: it is not needed
  std::size_t turns_ = 1;
  Memory memory_;
  std::array<Sent, kMaxVectors> sent_;  ///< by payload of the exchange that was launched last
};

/// Of all outboxes of a worker. What peers read in place belongs to the outboxes.
struct OutboxMemory {
  AlignedBytes own;  ///< where peers read none in place
  std::span<std::byte> all;
};

/// One for all: each memory costs a descriptor here and, if shared, at every peer.
OutboxMemory give_memory(std::span<Outbox* const> outboxes, Lends lends);

}  // namespace gossamer
