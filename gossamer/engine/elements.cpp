#include "gossamer/engine/elements.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <vector>

#include "gossamer/engine/typed_span.h"
#include "gossamer/kernels/codec.h"
#include "gossamer/kernels/copy.h"
#include "gossamer/kernels/finite.h"
#include "gossamer/kernels/mix_only.h"
#include "gossamer/kernels/norm.h"
#include "gossamer/kernels/sum.h"

namespace gossamer::elements {
namespace {

template <class T>
void sum_of(std::span<T> into, const Summands& summands) {
  std::vector<const T*> plain;
  std::vector<std::span<const std::byte>> coded;
  const auto count = std::ssize(into);
  for (const Summand& term : summands.terms) {
    if (term.is_coded) coded.push_back({term.data, coded_bytes(summands.codec, count)});
    if (!term.is_coded) plain.push_back(reinterpret_cast<const T*>(term.data));
  }
  if (coded.empty()) return sum_into<T>(into, plain, summands.scale);
  // In parts that stay in the first cache, since each summand is a pass.
  constexpr std::size_t kAtOnce = 16 * kCodecBlock;
  for (std::size_t begin = 0; begin < into.size(); begin += kAtOnce) {
    const std::span<T> here = into.subspan(begin, std::min(kAtOnce, into.size() - begin));
    const auto offset = static_cast<std::int64_t>(begin);
    if (plain.empty()) std::ranges::fill(here, T{0});
    if (!plain.empty()) sum_into<T>(here, plain, 1);
    for (const auto& part : coded) decode_add<T>(summands.codec, part, offset, here);
    const std::array<const T*, 1> sums{here.data()};
    if (summands.scale != 1) sum_into<T>(here, sums, summands.scale);
    for (const T*& term : plain) term += here.size();
  }
}

}  // namespace

void copy_bytes(void* into, const void* from, std::size_t bytes) {
  std::memmove(into, from, bytes);
}

void copy(DType dtype, void* into, const void* from, std::int64_t count) {
  copy_bytes(into, from, bytes_of(dtype, count));
}

void copy_streaming(DType dtype, void* into, const void* from, std::int64_t count) {
  gossamer::copy_streaming(into, from, bytes_of(dtype, count));
}

void copy_digested(DType dtype, void* into, const void* from, std::int64_t count,
                   std::span<Digest> digests) {
  visit_dtype(dtype, [&]<class T>(T) {
    gossamer::copy_digested<T>(typed<T>(from, 0, count), typed<T>(into, 0, count), digests);
  });
}

void clear(DType dtype, void* into, std::int64_t count) {
  std::memset(into, 0, bytes_of(dtype, count));
}

void scale(DType dtype, void* x, std::int64_t count, double weight) {
  if (weight == 1) return;
  visit_dtype(dtype, [&]<class T>(T) {
    mix_only<T>({.x = typed<T>(x, 0, count)}, {.self_weight = weight});
  });
}

void sum(DType dtype, void* into, std::int64_t count, const Summands& summands) {
  visit_dtype(dtype, [&]<class T>(T) { sum_of<T>(typed<T>(into, 0, count), summands); });
}

void encode(DType dtype, const Encoding& e) {
  visit_dtype(dtype, [&]<class T>(T) {
    gossamer::encode<T>(e.codec, {.x = typed<T>(e.x, 0, e.count),
                                  .coded = {e.coded, coded_bytes(e.codec, e.count, dtype)},
                                  .kept = static_cast<T*>(e.kept),
                                  .own = e.own,
                                  .keep = e.keep,
                                  .error = static_cast<T*>(e.error)});
  });
}

void decode(DType dtype, void* into, std::int64_t count, const Decoding& decoding) {
  visit_dtype(dtype, [&]<class T>(T) {
    gossamer::decode<T>(decoding.codec, decoding.coded, decoding.offset, typed<T>(into, 0, count));
  });
}

double norm_squared(DType dtype, const void* x, std::int64_t count, WorkerPool* pool) {
  return visit_dtype(dtype, [&]<class T>(T) { return sum_squares(typed<T>(x, 0, count), pool); });
}

double distance_squared(DType dtype, const void* a, const void* b, std::int64_t count) {
  return visit_dtype(dtype, [&]<class T>(T) {
    return distance_squares(typed<T>(a, 0, count), typed<T>(b, 0, count));
  });
}

bool are_finite(DType dtype, Codec codec, std::span<const std::byte> bytes) {
  if (codec != Codec::fp32) return decodes_to_finite(codec, bytes);
  return visit_dtype(dtype, [&]<class T>(T) {
    const void* const first = bytes.data();
    return all_finite(typed<T>(first, 0, std::ssize(bytes) / std::int64_t{sizeof(T)}));
  });
}

std::int64_t first_non_finite(DType dtype, const void* x, std::int64_t count) {
  return visit_dtype(dtype, [&]<class T>(T) {
    const std::span<const T> values = typed<T>(x, 0, count);
    const auto found = std::ranges::find_if(values, [](T value) { return !std::isfinite(value); });
    return found == values.end() ? std::int64_t{-1} : found - values.begin();
  });
}

double value_of(DType dtype, const void* element) {
  return visit_dtype(
      dtype, [&]<class T>(T) { return static_cast<double>(*static_cast<const T*>(element)); });
}

}  // namespace gossamer::elements
