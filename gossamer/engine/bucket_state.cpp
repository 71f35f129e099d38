#include "gossamer/engine/bucket_state.h"

#include <algorithm>
#include <cstring>
#include <string_view>
#include <utility>

#include "gossamer/base/errors.h"
#include "gossamer/engine/elements.h"

namespace gossamer {
namespace {

std::span<std::byte> whole(const Bucket& bucket, void* data) {
  return {static_cast<std::byte*>(data), bytes_of(bucket)};
}

std::span<std::byte> make_vector(BucketState& state) {
  return state.own_memory.emplace_back(state.dtype(), state.bucket.count).bytes();
}

/// Those that the bucket brings along; else own ones.
std::vector<std::span<std::byte>> take_vectors(BucketState& state, std::span<void* const> brought,
                                               std::size_t count) {
  GOSSAMER_ASSERT(brought.empty() || brought.size() == count);
  std::vector<std::span<std::byte>> vectors;
  for (std::size_t k = 0; k < count; ++k) {
    vectors.push_back(brought.empty() ? make_vector(state) : whole(state.bucket, brought[k]));
  }
  return vectors;
}

/// Element `offset` of what begins with the segment, or, where that is null, with the bucket.
template <class Begin>
auto address_in(DType dtype, const Segment& segment, std::int64_t offset, Begin* own,
                Begin* of_bucket) {
  if (own != nullptr) return elements::address(dtype, own, offset - segment.offset);
  return of_bucket == nullptr ? nullptr : elements::address(dtype, of_bucket, offset);
}

template <class Use>
void for_each_parameter(const Bucket& bucket, const Use& use) {
  for (const Segment& segment : bucket.segments) {
    if (segment.group != kGap) use(segment, parameter_at(bucket, segment, segment.offset));
  }
}

}  // namespace

Vector::Vector(DType dtype, std::int64_t count)
    : memory_(make_aligned_bytes(elements::bytes_of(dtype, count))),
      size_(elements::bytes_of(dtype, count)) {
  elements::clear(dtype, memory_.get(), count);
}

BucketState make_bucket_state(Bucket bucket, int index, const EngineOptions& options) {
  const Pattern& pattern = find_pattern(options.pattern);
  GOSSAMER_ASSERT(bucket.x.device == Device::cpu);
  BucketState state;
  state.bucket = std::move(bucket);
  state.index = index;
  if (!is_scattered(state.bucket)) {
    const std::size_t vectors = find_optimizer(options.optimizer).state.size();
    state.optimizer = take_vectors(state, state.bucket.optimizer_state, vectors);
  }
  state.pattern = take_vectors(state, state.bucket.pattern_state, pattern.state.size());
  if (facts_of(options.codec).carries_error) {
    state.codec = take_vectors(state, {}, pattern.payloads.size() + pattern.then.size());
  }
  return state;
}

std::size_t bytes_of(const Bucket& bucket) {
  return elements::bytes_of(bucket.dtype, bucket.count);
}

std::vector<StateVector> vectors_of(const BucketState& state, const Pattern& pattern,
                                    const Optimizer& optimizer) {
  const Bucket& bucket = state.bucket;
  GOSSAMER_ASSERT(!is_scattered(bucket));
  const std::string suffix = "." + std::to_string(state.index);
  std::vector<StateVector> all;
  all.push_back({"parameters" + suffix, bucket.dtype, whole(bucket, bucket.x.data)});
  const auto add = [&](std::string_view owner, std::span<const std::string_view> names,
                       std::span<const std::span<std::byte>> vectors) {
    for (std::size_t k = 0; k < names.size(); ++k) {
      all.push_back(
          {std::string(owner) + "." + std::string(names[k]) + suffix, bucket.dtype, vectors[k]});
    }
  };
  add(optimizer.name, optimizer.state, state.optimizer);
  add(pattern.name, pattern.state, state.pattern);
  return all;
}

void set_anchors(BucketState& state, const Pattern& pattern) {
  for (std::size_t k = 0; k < pattern.anchors; ++k) {
    read_parameters(state.bucket, state.pattern[k].data());
  }
}

void begin_anew(BucketState& state, const Pattern& pattern) {
  for (const std::span<std::byte> vector : state.pattern) std::ranges::fill(vector, std::byte{0});
  set_anchors(state, pattern);
}

void check_segments(const Bucket& bucket, std::span<const Segment> segments) {
  std::int64_t covered = 0;
  for (const Segment& segment : segments) {
    GOSSAMER_ASSERT(segment.offset == covered && segment.count > 0);
    covered += segment.count;
  }
  GOSSAMER_ASSERT(covered == bucket.count);
}

void read_parameters(const Bucket& bucket, std::byte* into) {
  for_each_parameter(bucket, [&](const Segment& segment, const std::byte* from) {
    elements::copy(bucket.dtype, elements::address(bucket.dtype, into, segment.offset), from,
                   segment.count);
  });
}

void write_parameters(const Bucket& bucket, const std::byte* from) {
  for_each_parameter(bucket, [&](const Segment& segment, std::byte* into) {
    elements::copy(bucket.dtype, into, elements::address(bucket.dtype, from, segment.offset),
                   segment.count);
  });
}

void clear_parameters(const Bucket& bucket) {
  for_each_parameter(bucket, [&](const Segment& segment, std::byte* values) {
    elements::clear(bucket.dtype, values, segment.count);
  });
}

std::byte* parameter_at(const Bucket& bucket, const Segment& segment, std::int64_t offset) {
  return address_in(bucket.dtype, segment, offset, segment.x, bucket.x.data);
}

std::byte* optimizer_state_at(const BucketState& state, const Segment& segment, std::size_t k,
                              std::int64_t offset) {
  const bool is_own = is_scattered(state.bucket);
  void* const own = is_own ? segment.state[k] : nullptr;
  void* const of_bucket = is_own ? nullptr : state.optimizer[k].data();
  return address_in(state.dtype(), segment, offset, own, of_bucket);
}

const std::byte* gradient_at(const Bucket& bucket, const Segment& segment, std::int64_t offset) {
  const void* const of_bucket = bucket.g.data;
  return address_in(bucket.dtype, segment, offset, segment.g, of_bucket);
}

const std::byte* payload_at(const BucketState& state, Payload payload, const Segment& segment,
                            std::int64_t offset) {
  if (segment.group == kGap && payload != Payload::own) return nullptr;
  switch (payload) {
    case Payload::own:
      return elements::address(state.dtype(), state.pattern[0].data(), offset);
    case Payload::parameters:
      return parameter_at(state.bucket, segment, offset);
    case Payload::gradients:
      return gradient_at(state.bucket, segment, offset);
    case Payload::momentum:
      return optimizer_state_at(state, segment, 0, offset);
    case Payload::second:
      return optimizer_state_at(state, segment, 1, offset);
  }
  __builtin_unreachable();
}

Memory payload_of(const BucketState& state, Payload payload) {
  switch (payload) {
    case Payload::parameters:
      return state.bucket.x;
    case Payload::gradients:
      return state.bucket.g;
    case Payload::own:
      return state.pattern[0].data();
    case Payload::momentum:
      return state.optimizer[0].data();
    case Payload::second:
      return state.optimizer[1].data();
  }
  __builtin_unreachable();
}

void* carried_error(const BucketState& state, const Pattern& pattern, int stage, std::size_t k) {
  if (state.codec.empty()) return nullptr;
  const std::size_t earlier = stage == 0 ? 0 : pattern.payloads.size();
  return state.codec[earlier + k].data();
}

void read_payload(const BucketState& state, Payload payload, PayloadPart range, std::byte* into,
                  CopyElements copy) {
  auto [begin, count] = range;
  const DType dtype = state.dtype();
  auto segment = std::ranges::upper_bound(state.bucket.segments, begin, {}, &Segment::offset) - 1;
  for (; count > 0; ++segment) {
    const std::int64_t here = std::min(count, segment->offset + segment->count - begin);
    const std::byte* from = payload_at(state, payload, *segment, begin);
    if (from == nullptr) {
      elements::clear(dtype, into, here);
    } else {
      copy(dtype, into, from, here);
    }
    begin += here;
    count -= here;
    into = elements::address(dtype, into, here);
  }
}

std::vector<Work> cut(std::span<const Segment> segments, std::span<const Piece> pieces,
                      std::int64_t longest) {
  std::vector<Work> works;
  for (const Piece& piece : pieces) {
    for (const Segment& segment : segments) {
      if (segment.group == kGap) continue;
      const std::int64_t begin = std::max(piece.offset, segment.offset);
      const std::int64_t end = std::min(piece.offset + piece.count, segment.offset + segment.count);
      for (std::int64_t first = begin; first < end; first += longest) {
        works.push_back({first, std::min(longest, end - first), &segment, &piece});
      }
    }
  }
  return works;
}

double gradient_norm_squared(const Bucket& bucket, WorkerPool* pool) {
  double sum = 0;
  for (const Segment& segment : bucket.segments) {
    if (segment.group < 0) continue;
    const std::byte* g = gradient_at(bucket, segment, segment.offset);
    sum += elements::norm_squared(bucket.dtype, g, segment.count, pool);
  }
  return sum;
}

std::int64_t first_non_finite_gradient(const Bucket& bucket) {
  for (const Segment& segment : bucket.segments) {
    if (segment.group < 0) continue;
    const std::byte* g = gradient_at(bucket, segment, segment.offset);
    const std::int64_t found = elements::first_non_finite(bucket.dtype, g, segment.count);
    if (found >= 0) return segment.offset + found;
  }
  return -1;
}

double gradient_value(const Bucket& bucket, std::int64_t element) {
  const auto segment = std::ranges::find_if(bucket.segments, [&](const Segment& s) {
    return element >= s.offset && element < s.offset + s.count;
  });
  return elements::value_of(bucket.dtype, gradient_at(bucket, *segment, element));
}

}  // namespace gossamer
