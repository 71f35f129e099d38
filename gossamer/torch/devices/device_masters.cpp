#include "gossamer/torch/devices/device_masters.h"

#include <ATen/ATen.h>

#include <algorithm>

#include "gossamer/kernels/random_rounding.h"

namespace gossamer {
namespace {

constexpr auto kBlock = static_cast<std::int64_t>(kRoundingBlock);
constexpr std::int64_t kPart = 1024 * kBlock;   // elements whose operands are in memory at once
constexpr std::int64_t kInfinity = 0x7F800000;  // of float32, as are those below
constexpr std::int64_t kMagnitude = 0x7FFFFFFF;
constexpr std::int64_t kSmallestNormalHalf = 0x38800000;

constexpr std::int64_t as_signed(std::uint64_t word) { return static_cast<std::int64_t>(word); }

/// Of whole numbers with `width` bits: without the sign that torch draws in.
at::Tensor shifted_right(const at::Tensor& x, int bits, int width) {
  return x.bitwise_right_shift(bits).bitwise_and_((std::int64_t{1} << (width - bits)) - 1);
}

/// counted_bits() of base.rng for the first element of each block, from element `first`.
at::Tensor block_words(std::int64_t first, std::int64_t blocks, std::uint64_t key,
                       const at::Device& device) {
  at::Tensor z = at::arange(blocks, at::dtype(at::kLong).device(device));
  z.mul_(kBlock).add_(first).mul_(as_signed(0x9e3779b97f4a7c15U)).add_(as_signed(key));
  z.bitwise_xor_(shifted_right(z, 30, 64)).mul_(as_signed(0xbf58476d1ce4e5b9U));
  z.bitwise_xor_(shifted_right(z, 27, 64)).mul_(as_signed(0x94d049bb133111ebU));
  return z.bitwise_xor_(shifted_right(z, 31, 64));
}

/// Sixteen random bits for each of `count` elements from `first`, which begins a block; see
/// random_bits() in kernels/rounding_loops.h.
at::Tensor random_words(std::int64_t first, std::int64_t count, std::uint64_t key,
                        const at::Device& device) {
  const at::Tensor words =
      block_words(first, (count + kBlock - 1) / kBlock, key, device).unsqueeze(1);
  at::Tensor h = at::arange(kBlock, at::dtype(at::kInt).device(device)).unsqueeze(0);
  h = h.bitwise_xor(words.to(at::kInt));
  h.bitwise_xor_(shifted_right(h, 16, 32)).mul_(0x7feb352d);
  h.bitwise_xor_(shifted_right(h, 15, 32)).add_(shifted_right(words, 32, 64).to(at::kInt));
  h.mul_(static_cast<std::int32_t>(0x846ca68bU));
  return shifted_right(h, 16, 32).flatten().narrow(0, 0, count);
}

/// See bf16_code() there.
at::Tensor bf16_codes(const at::Tensor& magnitude, const at::Tensor& random) {
  at::Tensor raised = magnitude + random;
  raised = at::where(raised.lt(kInfinity), raised, 0x7F7F0000);
  return shifted_right(raised, 16, 32);
}

/// See fp16_code() there.
at::Tensor fp16_codes(const at::Tensor& magnitude, const at::Tensor& random) {
  const at::Tensor drawn = shifted_right(random, 3, 32);
  const at::Tensor normal =
      shifted_right(magnitude + drawn - (std::int64_t{112} << 23), 13, 32).clamp_max_(0x7BFF);
  const at::Tensor is_small = magnitude.lt(kSmallestNormalHalf);
  const at::Tensor small = at::where(is_small, magnitude, 0).view(at::kFloat);
  const at::Tensor steps = small.mul(0x1p24).add_(drawn.to(at::kFloat).mul_(0x1p-13));
  return at::where(is_small, steps.to(at::kInt), normal);
}

/// The elements of a dense tensor, as they lie.
at::Tensor flat(const at::Tensor& tensor) { return tensor.as_strided({tensor.numel()}, {1}); }

/// Calls f(first, count) part by part.
template <class F>
void in_parts(std::int64_t elements, const F& f) {
  for (std::int64_t first = 0; first < elements; first += kPart) {
    f(first, std::min(kPart, elements - first));
  }
}

at::Tensor codes_of(const at::Tensor& values, const at::Tensor& random, bool is_half) {
  const at::Tensor bits = values.view(at::kInt);
  const at::Tensor magnitude = bits.bitwise_and(kMagnitude);
  at::Tensor codes = is_half ? fp16_codes(magnitude, random) : bf16_codes(magnitude, random);
  const at::Tensor special =
      at::where(magnitude.gt(kInfinity), is_half ? 0x7E00 : 0x7FC0, is_half ? 0x7C00 : 0x7F80);
  codes = at::where(magnitude.lt(kInfinity), codes, special);
  return codes.bitwise_or(shifted_right(bits, 16, 32).bitwise_and_(0x8000)).to(at::kShort);
}

}  // namespace

void take_changes_queued(const at::Tensor& now, const at::Tensor& written,
                         const at::Tensor& values) {
  in_parts(values.numel(), [&](std::int64_t first, std::int64_t count) {
    const at::Tensor part = flat(values).narrow(0, first, count);
    const at::Tensor known = flat(written).narrow(0, first, count);
    const at::Tensor low = flat(now).narrow(0, first, count);
    const at::Tensor to = low.to(at::kFloat);
    const at::Tensor from = known.to(at::kFloat);
    const at::Tensor change = to - from;
    const at::Tensor is_step = change.abs().le(from.abs().mul_(0.25));
    const at::Tensor moved = at::where(is_step, part + change, to);
    part.copy_(at::where(change.eq(0), part, moved));
    known.copy_(low);
  });
}

void round_queued(const at::Tensor& values, const at::Tensor& written, std::uint64_t key) {
  const bool is_half = written.scalar_type() == at::kHalf;
  in_parts(values.numel(), [&](std::int64_t first, std::int64_t count) {
    const at::Tensor random = random_words(first, count, key, values.device());
    const at::Tensor codes = codes_of(flat(values).narrow(0, first, count), random, is_half);
    flat(written).narrow(0, first, count).view(at::kShort).copy_(codes);
  });
}

}  // namespace gossamer
