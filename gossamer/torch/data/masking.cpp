#include "gossamer/torch/data/masking.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "gossamer/base/errors.h"
#include "gossamer/base/rng.h"

namespace gossamer {
namespace {

constexpr double kHidden = 0.8;
constexpr double kReplaced = 0.1;

/// So many of the positions 0 … length − 1, all sets being equally likely.
std::vector<std::size_t> chosen_positions(std::size_t length, std::size_t count, Rng& rng) {
  std::vector<std::size_t> positions(length);
  std::iota(positions.begin(), positions.end(), std::size_t{0});
  for (std::size_t k = 0; k < count; ++k) {
    std::swap(positions[k], positions[k + rng.below(length - k)]);
  }
  positions.resize(count);
  return positions;
}

std::int64_t stand_in(std::int64_t token, const Masking& masking, Rng& rng) {
  const double lot = rng.uniform();
  if (lot < kHidden) return masking.vocabulary;
  if (lot >= kHidden + kReplaced) return token;
  return static_cast<std::int64_t>(rng.below(static_cast<std::uint64_t>(masking.vocabulary)));
}

void mask_row(std::span<std::int64_t> inputs, std::span<std::int64_t> targets,
              const Masking& masking, Rng& rng) {
  const auto wanted = std::lround(masking.share * static_cast<double>(inputs.size()));
  const auto count = static_cast<std::size_t>(std::max(wanted, 1L));
  std::ranges::fill(targets, kIgnoredTarget);
  for (const std::size_t position : chosen_positions(inputs.size(), count, rng)) {
    targets[position] = inputs[position];
    inputs[position] = stand_in(inputs[position], masking, rng);
  }
}

}  // namespace

void check_masking(const Masking& masking) {
  if (masking.share > 0 && masking.share < 1) return;
  fail_argument({.place = "text",
                 .what = "mask_share must be greater than 0 and less than 1",
                 .got = std::to_string(masking.share),
                 .remedy = "0.15 is usual"});
}

void mask_tokens(Batch& batch, const Masking& masking, std::uint64_t key, std::int64_t first_row) {
  check_masking(masking);
  const std::int64_t rows = batch.inputs.size(0);
  const auto length = static_cast<std::size_t>(batch.inputs.size(1));
  auto* inputs = batch.inputs.mutable_data_ptr<std::int64_t>();
  auto* targets = batch.targets.mutable_data_ptr<std::int64_t>();
  for (std::int64_t row = 0; row < rows; ++row, inputs += length, targets += length) {
    Rng rng(key, static_cast<std::uint64_t>(first_row + row));
    mask_row({inputs, length}, {targets, length}, masking, rng);
  }
}

}  // namespace gossamer
