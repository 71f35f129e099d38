#include "gossamer/torch/data/pair_batch.h"

#include <ATen/ATen.h>

#include <algorithm>

#include "gossamer/base/index.h"

namespace gossamer {

Batch pair_batch(const std::vector<PiecePair>& pairs, const std::vector<std::int64_t>& chosen) {
  std::size_t source_length = 0;
  std::size_t target_length = 0;
  for (const std::int64_t i : chosen) {
    const PiecePair& pair = pairs[at(i)];
    source_length = std::max(source_length, pair.source.size() + 1);
    target_length = std::max(target_length, pair.target.size() + 1);
  }
  const auto rows = static_cast<std::int64_t>(chosen.size());
  const auto filled = [&](std::size_t length, std::int64_t value) {
    return at::full({rows, static_cast<std::int64_t>(length)}, value, at::dtype(at::kLong));
  };
  Batch batch{.inputs = filled(target_length, kPadding),
              .targets = filled(target_length, kIgnoredTarget),
              .sources = filled(source_length, kPadding)};
  auto* source = batch.sources.mutable_data_ptr<std::int64_t>();
  auto* input = batch.inputs.mutable_data_ptr<std::int64_t>();
  auto* target = batch.targets.mutable_data_ptr<std::int64_t>();
  for (const std::int64_t i : chosen) {
    const PiecePair& pair = pairs[at(i)];
    *std::ranges::copy(pair.source, source).out = Vocabulary::kEnd;
    input[0] = Vocabulary::kBegin;
    std::ranges::copy(pair.target, input + 1);
    *std::ranges::copy(pair.target, target).out = Vocabulary::kEnd;
    source += source_length;
    input += target_length;
    target += target_length;
  }
  return batch;
}

}  // namespace gossamer
