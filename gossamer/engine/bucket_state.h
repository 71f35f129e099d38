#pragma once
/// A bucket with its state vectors: where its elements are, and what its gradient is like.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "gossamer/algo/pattern.h"
#include "gossamer/base/aligned_bytes.h"
#include "gossamer/engine/options.h"
#include "gossamer/exchange/plan.h"

namespace gossamer {

class WorkerPool;

/// Zeroed, cache-line aligned memory.
class Vector {
 public:
  Vector(DType dtype, std::int64_t count);
  std::span<std::byte> bytes() const { return {memory_.get(), size_}; }

 private:
  AlignedBytes memory_;
  std::size_t size_;
};

/// A named state vector of a bucket, for checkpoints.
struct StateVector {
  std::string name;
  DType dtype = DType::f32;
  std::span<std::byte> bytes;
};

struct BucketState {
  Bucket bucket;
  int index = 0;
  std::vector<std::span<std::byte>> optimizer;  ///< empty where the bucket is scattered
  std::vector<std::span<std::byte>> pattern;
  /// By payload, stage after stage: what its coding left out; empty where the codec loses nothing
  /// that is to be kept.
  std::vector<std::span<std::byte>> codec;
  std::vector<Vector> own_memory;  ///< of the vectors that the bucket does not bring along

  DType dtype() const { return bucket.dtype; }
};

BucketState make_bucket_state(Bucket bucket, int index, const EngineOptions& options);

/// Whether the parameters are where the segments say; see Note [Scattered buckets].
inline bool is_scattered(const Bucket& bucket) { return bucket.x.data == nullptr; }
/// Of one of its vectors.
std::size_t bytes_of(const Bucket& bucket);

/// The parameters and the state vectors, for a bucket that is not scattered.
std::vector<StateVector> vectors_of(const BucketState& state, const Pattern& pattern,
                                    const Optimizer& optimizer);
/// Lets the pattern's anchors start as the parameters are.
void set_anchors(BucketState& state, const Pattern& pattern);
/// What the pattern keeps is as at the start.
void begin_anew(BucketState& state, const Pattern& pattern);

/// Asserts that they cover the bucket without gaps, in order.
void check_segments(const Bucket& bucket, std::span<const Segment> segments);
/// Copies all parameters, one after the other as in the bucket; leaves gaps alone.
void read_parameters(const Bucket& bucket, std::byte* into);
void write_parameters(const Bucket& bucket, const std::byte* from);
void clear_parameters(const Bucket& bucket);

/// Where element `offset` of the bucket, which lies in the segment, is.
std::byte* parameter_at(const Bucket& bucket, const Segment& segment, std::int64_t offset);
/// Null where the layer above keeps none for parameters that are not stepped.
std::byte* optimizer_state_at(const BucketState& state, const Segment& segment, std::size_t k,
                              std::int64_t offset);
/// Null without a gradient.
const std::byte* gradient_at(const Bucket& bucket, const Segment& segment, std::int64_t offset);
/// Null where the payload has no such element.
const std::byte* payload_at(const BucketState& state, Payload payload, const Segment& segment,
                            std::int64_t offset);
/// A payload of a bucket that is not scattered.
Memory payload_of(const BucketState& state, Payload payload);

/// What the coding of payload `k` of a stage has left out before; null where that is not kept.
void* carried_error(const BucketState& state, const Pattern& pattern, int stage, std::size_t k);

/// elements::copy or one like it.
using CopyElements = void (*)(DType dtype, void* into, const void* from, std::int64_t count);
struct PayloadPart {
  std::int64_t begin = 0;
  std::int64_t count = 0;
};
/// Writes the elements of a range of a payload with `copy`; zeros where there are none.
void read_payload(const BucketState& state, Payload payload, PayloadPart range, std::byte* into,
                  CopyElements copy);

/// A range of elements that lies in one segment and one piece.
struct Work {
  std::int64_t offset = 0;
  std::int64_t count = 0;
  const Segment* segment = nullptr;
  const Piece* piece = nullptr;
};
/// All elements but those of gaps, in ranges of at most `longest`.
std::vector<Work> cut(std::span<const Segment> segments, std::span<const Piece> pieces,
                      std::int64_t longest);

/// Σ g² of the local gradient, over the segments that have one.
double gradient_norm_squared(const Bucket& bucket, WorkerPool* pool);
/// Index of the first element of the local gradient that is not finite, or −1.
std::int64_t first_non_finite_gradient(const Bucket& bucket);
/// Element `element` of the local gradient.
double gradient_value(const Bucket& bucket, std::int64_t element);

}  // namespace gossamer
