#include "gossamer/torch/modules/dropout.h"

#include <ATen/ATen.h>

#include <cmath>
#include <string>

#include "gossamer/base/errors.h"
#include "gossamer/base/rng.h"

namespace gossamer {
namespace {

constexpr std::int64_t kPerWord = 4;  // 16 bits decide about an element
constexpr double kSteps = 65536;

template <class T>
void fill_mask(T* mask, std::int64_t count, double rate, std::uint64_t seed) {
  const auto threshold = static_cast<std::uint64_t>(std::llround(rate * kSteps));
  const T kept = static_cast<T>(1 / (1 - static_cast<double>(threshold) / kSteps));
  const auto at = [&](std::uint64_t word, std::int64_t part) {
    return ((word >> (16 * part)) & 0xffff) < threshold ? T{0} : kept;
  };
  const std::int64_t whole = count / kPerWord * kPerWord;
  for (std::int64_t i = 0; i < whole; i += kPerWord) {
    const std::uint64_t word = counted_bits(seed, static_cast<std::uint64_t>(i));
    for (std::int64_t part = 0; part < kPerWord; ++part) mask[i + part] = at(word, part);
  }
  const std::uint64_t last = counted_bits(seed, static_cast<std::uint64_t>(whole));
  for (std::int64_t i = whole; i < count; ++i) mask[i] = at(last, i - whole);
}

}  // namespace

Dropout::Dropout(double rate, std::uint64_t seed) : rate_(rate), seed_(seed) {
  if (rate >= 0 && rate < 1) return;
  fail_argument({.place = "dropout",
                 .what = "the rate must be at least 0 and less than 1",
                 .got = std::to_string(rate)});
}

at::Tensor Dropout::operator()(const at::Tensor& x) {
  if (rate_ == 0) return x;
  const bool is_here = x.is_cpu();
  const auto here = x.options().requires_grad(false).device(at::kCPU).pinned_memory(!is_here);
  at::Tensor mask = at::empty(x.sizes(), here);
  const std::uint64_t seed = mix_bits(seed_, masks_++);
  if (x.scalar_type() == at::kFloat) {
    fill_mask(mask.mutable_data_ptr<float>(), x.numel(), rate_, seed);
  } else {
    fill_mask(mask.mutable_data_ptr<double>(), x.numel(), rate_, seed);
  }
  return x * (is_here ? mask : mask.to(x.device(), /*non_blocking=*/true));
}

}  // namespace gossamer
