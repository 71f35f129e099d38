#pragma once
/// A Lane: one bucket on its way through the steps, with its state vectors and its exchanges.

#include <array>
#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "gossamer/algo/pattern.h"
#include "gossamer/base/aligned_bytes.h"
#include "gossamer/base/parallel.h"
#include "gossamer/engine/exchange_runner.h"
#include "gossamer/engine/late_edges.h"
#include "gossamer/engine/options.h"
#include "gossamer/kernels/digest.h"

namespace gossamer {

/// A named state vector of a bucket, for checkpoints.
struct StateVector {
  std::string name;
  DType dtype = DType::f32;
  std::span<std::byte> bytes;
};

/// Zeroed, cache-line aligned memory.
class Vector {
 public:
  Vector(DType dtype, std::int64_t count);
  std::span<std::byte> bytes() const { return {memory_.get(), size_}; }

 private:
  AlignedBytes memory_;
  std::size_t size_;
};

/// Note [Outboxes]: where peers can read SharedMemory only and there is no spare in it, and for
/// scattered buckets, a payload is copied once into an outbox, whichever number of peers reads it
/// there. Where peers read in place a lane has two, which take turns: one may still be read when
/// the next is filled. What leaves coded has none, see gather().

/// Note [What was sent]: between two updates the parameters of a scattered bucket belong to the
/// user, who may change them. The mix of x with what neighbours sent, y_j, is then relative to what
/// this worker sent, y_i: x + Σ w_ij (y_j − y_i), which keeps the mean over the workers. To read
/// y_i costs a fifth of a pass. So the copy into the outbox also makes digests of its tiles, and
/// where x still has the same the pass computes (1 − Σ w_ij) x + Σ w_ij y_j.

/// Note [Two memories]: with a spare, an update reads x and writes the spare, and the two change
/// places. x then stays as it was while peers read it where it is, until this worker's next update
/// but one writes there: nothing is copied to hand the parameters over. Needs a pattern that sends
/// the parameters after the update, and pays where the transport serves in place.
class Lane {
 public:
  Lane(const Bucket& bucket, int index, const Pattern& pattern, const Optimizer& optimizer,
       Codec codec = Codec::fp32);

  const Bucket& bucket() const { return bucket_; }
  /// New segments from the next pass on; they must cover the bucket without gaps, in order.
  void set_segments(std::vector<Segment> segments);
  int index() const { return index_; }
  /// From the next expect() on; null: nobody is told of messages.
  void set_recorder(Recorder* recorder) { recorder_ = recorder; }
  /// Whether parameters of others that are not finite are refused; see payload_check.h.
  void check_payloads(bool checks) { checks_payloads_ = checks; }
  std::vector<StateVector> state() const;
  /// Lets the pattern's anchors start as the parameters are.
  void set_anchors();
  /// How much memory its outboxes need, and where they are from now on; `owner` keeps it for peers
  /// that read it in place, if they do.
  std::size_t outbox_bytes(bool is_shared) const;
  void set_outbox(Owner owner, std::byte* begin);
  /// Whether its parameters are where its segments say; see Note [Scattered buckets].
  bool is_scattered() const { return bucket_.x == nullptr; }
  std::size_t bytes() const;
  /// Copies all parameters, one after the other as in the bucket; leaves gaps alone.
  void read_parameters(std::byte* into) const;
  void write_parameters(const std::byte* from) const;

  /// From now on nobody is waited for; `plans` are all that this bucket will follow.
  void skip_late(Transport& transport, LateSpec spec, std::span<const Plan* const> plans);
  void collect_late();
  std::int64_t skipped() const;
  /// Note [Numbers of exchanges]: of step t and stage s of the pattern it is t · stages + s, so
  /// that exchanges that follow each other differ in their tags and take turns with the slots.
  ///
  /// Posts the first receives of an exchange, see Note [Receive early].
  void expect(ExchangeRunner& runner, std::shared_ptr<const Plan> plan, std::int64_t number);
  bool expects(std::int64_t number) const { return slot_of(number).plan != nullptr; }
  /// Sends this bucket's payloads as the plan expected for this exchange says.
  void launch(ExchangeRunner& runner, std::int64_t number);
  bool launched() const { return current_ != nullptr; }
  /// Waits until everything launched has arrived and the memory that the next update writes is back
  /// from peers; nothing is consumed.
  void wait();
  /// Whether wait() would return at once; does what can be done without waiting. Throws what it
  /// would throw, and once peers keep memory beyond `deadline`.
  bool is_ready(Deadline deadline);
  /// After wait(): returns what peers lent, keeping copies.
  void take_over() const;
  /// Waits until peers have returned everything that was lent to them.
  void wait_all_back() const;

  /// Runs the pattern's local pass; needs the gradient only.
  double prepare(std::span<const StepNumbers> groups, WorkerPool* pool, bool measure);
  /// After wait(): adds how long what arrived was on its way.
  void add_journeys(std::vector<Interval>& journeys) const;
  /// Whether another exchange of the same step is to follow the one that was launched last.
  bool has_next_stage() const { return stage_of(number_) + 1 < pattern_.stages(); }
  /// Runs the pattern's combining pass on what arrived, the middle one where another stage follows,
  /// and gives the exchanges back.
  double combine(std::span<const StepNumbers> groups, WorkerPool* pool, bool measure);

  /// Σ g² of the local gradient, over the segments that have one.
  double local_norm_squared(WorkerPool* pool) const;
  /// Σ ḡ² of the averaged gradient, once it has arrived.
  double mean_norm_squared(WorkerPool* pool) const;
  /// Index of the first element of the local gradient that is not finite, or −1.
  std::int64_t first_non_finite() const;
  /// Element `element` of the local gradient.
  double gradient_at(std::int64_t element) const;

 private:
  struct Work {  ///< a range of elements that lies in one segment and one piece
    std::int64_t offset = 0;
    std::int64_t count = 0;
    const Segment* segment = nullptr;
    const Piece* piece = nullptr;
    std::size_t digests() const { return digest_count(static_cast<std::size_t>(count)); }
  };

  PayloadRef find_payload(Payload payload);
  // Where element `offset` of the bucket, which lies in the segment, is.
  std::byte* parameter_at(const Segment& segment, std::int64_t offset) const;
  std::byte* state_at(const Segment& segment, std::size_t k, std::int64_t offset) const;
  const std::byte* gradient_at(const Segment& segment, std::int64_t offset) const;
  const std::byte* payload_at(Payload payload, const Segment& segment, std::int64_t offset) const;
  template <class Copy>
  void read_payload(Payload payload, std::int64_t begin, std::int64_t count, std::byte* into,
                    const Copy& copy) const;
  PayloadRef gather(Payload payload, std::size_t k);
  void remember(Payload payload, std::size_t k, std::byte* box);
  std::byte* outbox(std::size_t k) const;
  void* carried_error(std::int64_t number, std::size_t payload) const;
  std::int64_t longest_work() const;
  std::vector<Work> cut(std::span<const Piece> pieces, std::int64_t longest) const;
  template <class T>
  void find_sources(const Work& work, std::size_t payload, std::vector<Source<T>>& sources);
  template <class T>
  Mix<T> mix_of(const Work& work, std::size_t payload, std::vector<Source<T>>& sources,
                std::size_t first_digest);
  template <class T>
  double sweep(std::span<const Piece> pieces, typename Pattern::Pass<T> pass,
               std::span<const StepNumbers> groups, WorkerPool* pool, bool measure);

  Bucket bucket_;
  const int index_;
  const Pattern& pattern_;
  const Optimizer& optimizer_;
  Recorder* recorder_ = nullptr;
  bool checks_payloads_ = false;
  std::vector<Vector> own_memory_;  ///< of the state vectors that the bucket does not bring along
  std::vector<std::span<std::byte>> optimizer_state_;
  std::vector<std::span<std::byte>> pattern_state_;
  /// By payload, stage after stage: what its coding left out.
  std::vector<std::span<std::byte>> codec_state_;
  std::span<std::byte> whole(void* data) const;
  std::span<std::byte> make_vector();
  std::vector<std::span<std::byte>> take_vectors(std::span<void* const> brought, std::size_t count);

  /// The exchanges of one stage; consecutive ones take turns with two of them.
  struct Slot {
    std::array<Arena, kMaxVectors> arenas;
    std::shared_ptr<const Plan> plan;
    std::array<std::shared_ptr<Exchange>, kMaxVectors> exchanges;  ///< by payload
  };
  std::array<Slot, 2> slots_;
  std::vector<std::unique_ptr<LateEdges>> late_;  ///< by payload; empty: neighbours are waited for
  std::int64_t number_ = 0;                       ///< of the exchange that was launched last
  std::deque<Vector> decoded_;                    ///< room for coded terms
  Slot& slot_of(std::int64_t number) { return slots_[static_cast<std::size_t>(number % 2)]; }
  const Slot& slot_of(std::int64_t number) const {
    return slots_[static_cast<std::size_t>(number % 2)];
  }
  int stage_of(std::int64_t number) const { return static_cast<int>(number % pattern_.stages()); }
  std::span<const Payload> payloads_of(std::int64_t number) const {
    return pattern_.payloads_of(stage_of(number));
  }
  Slot* current_ = nullptr;  ///< launched and not yet consumed
  PayloadRef hand_over(const Plan& plan, const PayloadRef& payload, std::size_t k);
  Owner outbox_owner_;
  std::byte* outbox_begin_ = nullptr;  ///< null: payloads are sent from where they are
  /// By payload of the current exchange, see Note [What was sent].
  struct Sent {
    const std::byte* data = nullptr;  ///< null: nothing was sent, or nobody changes it
    std::vector<Digest> digests;      ///< of its works in the order of cut(); empty: none
  };
  std::array<Sent, kMaxVectors> sent_;
  /// The consumed exchanges of the previous step, whose payload peers may still read.
  std::array<std::shared_ptr<Exchange>, kMaxVectors> lent_;
};

}  // namespace gossamer
