#pragma once
/// How a model's parameters lie in flat arrays, and where those are cut into buckets: plain data.

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "gossamer/base/dtype.h"
#include "gossamer/engine/options.h"

namespace gossamer {

/// One trainable parameter as the module registered it.
struct ParameterInfo {
  std::string name;
  DType dtype = DType::f32;
  std::vector<std::int64_t> sizes;
  /// Parameters of one group share their optimizer settings (e.g. weight decay).
  int group = 0;
  /// Further names under which the module reaches the same tensor.
  std::vector<std::string> aliases = {};
  /// 0, or for what is mixed beside the parameters: in every so many-th step.
  std::int64_t beside_every = 0;

  std::int64_t count() const;
};

/// Where a parameter lies: `count` elements from `offset` of flat array `array`. It touches the
/// buckets `first_bucket` … `last_bucket`, which are several when a cut goes through it,
/// and none (0 … −1) where it is empty.
struct ParameterSlot {
  ParameterInfo info;
  int array = 0;
  std::int64_t offset = 0;
  std::int64_t count = 0;
  int first_bucket = 0;
  int last_bucket = 0;
};

/// A cut of a flat array: `count` elements from `first`. The segments cover it without gaps.
struct BucketLayout {
  int array = 0;
  std::int64_t first = 0;
  std::int64_t count = 0;
  std::vector<Segment> segments;
};

/// One flat array per element type of parameters, and per type and period of what is beside them;
/// `count` includes the padding.
struct ArrayLayout {
  DType dtype = DType::f32;
  std::int64_t beside_every = 0;
  std::int64_t count = 0;
};

/// The whole picture. Slots come in the order in which they lie in memory.
struct FlatLayout {
  std::vector<ArrayLayout> arrays;
  std::vector<ParameterSlot> slots;
  std::vector<BucketLayout> buckets;
};

struct LayoutOptions {
  /// No bucket is larger than this, up to rounding.
  std::int64_t bucket_bytes = 4 << 20;
  /// At least this many per array, as long as each has kBucketAlignment elements.
  int min_buckets = 4;
  /// The number of buckets is a multiple of this: the period of the schedule, when staggered
  /// buckets are to load the links equally in every step.
  int bucket_multiple = 1;
};

/// Every parameter starts at a multiple of this many elements (64 bytes of f32), so that kernels
/// see the alignment they would see in a tensor of its own.
inline constexpr std::int64_t kSlotAlignment = 16;
/// Every bucket starts and ends at a multiple of this many elements.
inline constexpr std::int64_t kBucketAlignment = 64;

/// Lays the parameters out in reverse order (the order in which a backward pass finishes them),
/// array by array, those of parameters first, and cuts each array into buckets of equal size up to
/// kBucketAlignment. Throws std::invalid_argument when an option is not positive.
FlatLayout plan_layout(std::span<const ParameterInfo> parameters, const LayoutOptions& options);

/// Elements of each bucket.
std::vector<std::int64_t> bucket_sizes(const FlatLayout& layout);

/// "parameter 'NAME'", of which this element of a bucket is; "bucket B" for padding.
std::string name_at(const FlatLayout& layout, int bucket, std::int64_t element);

}  // namespace gossamer
