#include "gossamer/data/sharding.h"

#include <bit>
#include <string>

#include "gossamer/base/errors.h"
#include "gossamer/base/rng.h"

namespace gossamer {

SampleRange local_range(std::int64_t global_batch, Shard shard) {
  if (shard.worker < 0 || shard.worker >= shard.workers) {
    fail_argument({.place = "sharding",
                   .what = "the worker must be one of the " + std::to_string(shard.workers),
                   .got = std::to_string(shard.worker)});
  }
  if (global_batch < shard.workers) {
    fail_argument({.place = "sharding",
                   .what = "a global batch needs at least one sample per worker",
                   .got = std::to_string(global_batch) + " samples for " +
                          std::to_string(shard.workers) + " workers",
                   .remedy = "raise the global batch"});
  }
  return {.begin = global_batch * shard.worker / shard.workers,
          .end = global_batch * (shard.worker + 1) / shard.workers};
}

std::uint64_t noise_seed(std::uint64_t seed, std::int64_t step, Shard shard) {
  return mix_bits(mix_bits(seed, static_cast<std::uint64_t>(step)),
                  static_cast<std::uint64_t>(shard.worker));
}

std::uint64_t permuted(std::uint64_t index, std::uint64_t count, std::uint64_t key) {
  GOSSAMER_ASSERT(index < count);
  if (count == 1) return 0;
  constexpr std::uint64_t kRounds = 4;
  const auto half = (std::bit_width(count - 1) + 1) / 2;
  const std::uint64_t mask = (std::uint64_t{1} << half) - 1;
  do {
    std::uint64_t left = index >> half;
    std::uint64_t right = index & mask;
    for (std::uint64_t round = 0; round < kRounds; ++round) {
      const std::uint64_t mixed = left ^ (mix_bits(mix_bits(key, round), right) & mask);
      left = right;
      right = mixed;
    }
    index = (left << half) | right;
  } while (index >= count);
  return index;
}

}  // namespace gossamer
