#include "gossamer/kernels/random_rounding.h"

#include <algorithm>
#include <string>

#include "gossamer/base/errors.h"
#include "gossamer/base/rng.h"
#include "gossamer/kernels/kernel_table.h"

namespace gossamer {

void round_at_random(HalfFormat format, std::span<const float> x, std::span<std::uint16_t> to,
                     std::uint64_t key) {
  if (x.size() != to.size()) {
    fail_argument({.place = "round_at_random",
                   .what = "needs as many codes as numbers",
                   .got = std::to_string(to.size()) + " for " + std::to_string(x.size()),
                   .remedy = "give it spans of one size"});
  }
  const RoundingKernels& kernels = rounding_kernels(active_isa());
  const auto round = format == HalfFormat::bf16 ? kernels.bf16 : kernels.fp16;
  for (std::size_t begin = 0; begin < x.size(); begin += kRoundingBlock) {
    const std::uint64_t words = counted_bits(key, begin);
    round({.x = x.data() + begin,
           .to = to.data() + begin,
           .count = std::min(kRoundingBlock, x.size() - begin),
           .first = static_cast<unsigned>(words),
           .second = static_cast<unsigned>(words >> 32)});
  }
}

}  // namespace gossamer
