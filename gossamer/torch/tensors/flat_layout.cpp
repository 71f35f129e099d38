#include "gossamer/torch/tensors/flat_layout.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <string_view>

#include "gossamer/base/errors.h"
#include "gossamer/base/index.h"

namespace gossamer {
namespace {

std::int64_t round_up(std::int64_t value, std::int64_t unit) {
  return (value + unit - 1) / unit * unit;
}

void check_positive(std::string_view what, std::int64_t value) {
  if (value > 0) return;
  fail_argument({.place = "flat layout",
                 .what = what,
                 .got = std::to_string(value),
                 .remedy = "give a positive number"});
}

int array_of(FlatLayout& layout, const ParameterInfo& parameter) {
  for (std::size_t i = 0; i < layout.arrays.size(); ++i) {
    const ArrayLayout& array = layout.arrays[i];
    if (array.dtype == parameter.dtype && array.beside_every == parameter.beside_every) {
      return static_cast<int>(i);
    }
  }
  layout.arrays.push_back({.dtype = parameter.dtype, .beside_every = parameter.beside_every});
  return static_cast<int>(layout.arrays.size()) - 1;
}

void place_slot(const ParameterInfo& parameter, FlatLayout& layout) {
  const int index = array_of(layout, parameter);
  ArrayLayout& array = layout.arrays[at(index)];
  const std::int64_t count = parameter.count();
  layout.slots.push_back(
      {.info = parameter, .array = index, .offset = array.count, .count = count});
  array.count = round_up(array.count + count, kSlotAlignment);
}

void place_slots(std::span<const ParameterInfo> parameters, FlatLayout& layout) {
  for (const bool is_beside : {false, true}) {
    for (std::size_t i = parameters.size(); i-- > 0;) {
      if ((parameters[i].beside_every > 0) == is_beside) place_slot(parameters[i], layout);
    }
  }
  std::stable_sort(
      layout.slots.begin(), layout.slots.end(),
      [](const ParameterSlot& a, const ParameterSlot& b) { return a.array < b.array; });
  for (ArrayLayout& array : layout.arrays) array.count = round_up(array.count, kBucketAlignment);
}

std::int64_t bucket_count(const ArrayLayout& array, const LayoutOptions& options) {
  const auto bytes = array.count * static_cast<std::int64_t>(size_of(array.dtype));
  const std::int64_t wanted = std::max<std::int64_t>(
      (bytes + options.bucket_bytes - 1) / options.bucket_bytes, options.min_buckets);
  const std::int64_t most = array.count / kBucketAlignment;
  return std::min(round_up(wanted, options.bucket_multiple), most);
}

void cut_buckets(int index, const LayoutOptions& options, FlatLayout& layout) {
  const ArrayLayout& array = layout.arrays[at(index)];
  const std::int64_t units = array.count / kBucketAlignment;
  const std::int64_t cuts = bucket_count(array, options);
  for (std::int64_t k = 0; k < cuts; ++k) {
    const std::int64_t first = units * k / cuts * kBucketAlignment;
    const std::int64_t end = units * (k + 1) / cuts * kBucketAlignment;
    layout.buckets.push_back(
        {.array = index, .first = first, .count = end - first, .segments = {}});
  }
}

/// Adds the part of [begin, end) that lies in the bucket; true when there is one.
bool add_segment(BucketLayout& bucket, std::int64_t begin, std::int64_t end, int group) {
  const std::int64_t from = std::max(begin, bucket.first);
  const std::int64_t to = std::min(end, bucket.first + bucket.count);
  if (from >= to) return false;
  if (!bucket.segments.empty() && bucket.segments.back().group == group) {
    bucket.segments.back().count += to - from;
  } else {
    bucket.segments.push_back({.offset = from - bucket.first, .count = to - from, .group = group});
  }
  return true;
}

/// The padding behind a slot belongs to the slot's segment, so that segments leave no gaps.
void fill_segments(FlatLayout& layout) {
  for (std::size_t s = 0; s < layout.slots.size(); ++s) {
    ParameterSlot& slot = layout.slots[s];
    const bool last = s + 1 == layout.slots.size() || layout.slots[s + 1].array != slot.array;
    const std::int64_t end =
        last ? layout.arrays[at(slot.array)].count : layout.slots[s + 1].offset;
    slot.first_bucket = 0;
    slot.last_bucket = -1;
    for (std::size_t b = 0; b < layout.buckets.size(); ++b) {
      BucketLayout& bucket = layout.buckets[b];
      if (bucket.array != slot.array) continue;
      if (!add_segment(bucket, slot.offset, end, slot.info.group)) continue;
      if (bucket.first >= slot.offset + slot.count) continue;  // only padding of the slot
      if (slot.last_bucket < 0) slot.first_bucket = static_cast<int>(b);
      slot.last_bucket = static_cast<int>(b);
    }
  }
}

}  // namespace

std::int64_t ParameterInfo::count() const {
  return std::accumulate(sizes.begin(), sizes.end(), std::int64_t{1}, std::multiplies<>());
}

FlatLayout plan_layout(std::span<const ParameterInfo> parameters, const LayoutOptions& options) {
  check_positive("bucket_bytes must be positive", options.bucket_bytes);
  check_positive("min_buckets must be positive", options.min_buckets);
  check_positive("bucket_multiple must be positive", options.bucket_multiple);
  FlatLayout layout;
  place_slots(parameters, layout);
  for (std::size_t i = 0; i < layout.arrays.size(); ++i) {
    cut_buckets(static_cast<int>(i), options, layout);
  }
  fill_segments(layout);
  return layout;
}

std::vector<std::int64_t> bucket_sizes(const FlatLayout& layout) {
  std::vector<std::int64_t> sizes;
  for (const BucketLayout& bucket : layout.buckets) sizes.push_back(bucket.count);
  return sizes;
}

std::string name_at(const FlatLayout& layout, int bucket, std::int64_t element) {
  const BucketLayout& cut = layout.buckets.at(at(bucket));
  const std::int64_t position = cut.first + element;
  for (const ParameterSlot& slot : layout.slots) {
    const bool is_inside =
        slot.array == cut.array && position >= slot.offset && position < slot.offset + slot.count;
    if (is_inside) return "parameter '" + slot.info.name + "'";
  }
  return "bucket " + std::to_string(bucket);
}

}  // namespace gossamer
