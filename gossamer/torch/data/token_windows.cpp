#include "gossamer/torch/data/token_windows.h"

#include <ATen/ATen.h>

#include <algorithm>

#include "gossamer/base/errors.h"
#include "gossamer/base/index.h"
#include "gossamer/base/rng.h"

namespace gossamer {
namespace {

constexpr const char* kText = "text";

}  // namespace

WindowStarts::WindowStarts(const std::vector<CorpusSpan>& spans, std::int64_t context) {
  for (const CorpusSpan& span : spans) {
    if (span.end - span.begin <= context) continue;
    starts_.push_back({.begin = span.begin, .end = span.end - context});
    before_.push_back(count_);
    count_ += starts_.back().end - starts_.back().begin;
  }
  if (count_ > 0) return;
  fail_argument({.place = kText,
                 .what = "no stretch of the text is longer than the context of " +
                         std::to_string(context) + " tokens",
                 .got = std::to_string(spans.size()) + " stretch(es)",
                 .remedy = "give more text or a shorter context"});
}

std::int64_t WindowStarts::at(std::int64_t k) const {
  GOSSAMER_ASSERT(k >= 0 && k < count_);
  const auto after = std::upper_bound(before_.begin(), before_.end(), k);
  const auto span = static_cast<std::size_t>(after - before_.begin()) - 1;
  return starts_[span].begin + (k - before_[span]);
}

std::vector<std::int64_t> window_offsets(const WindowStarts& starts, std::int64_t global_batch,
                                         std::uint64_t seed, std::int64_t step, Shard shard) {
  const SampleRange range = local_range(global_batch, shard);
  std::vector<std::int64_t> offsets;
  for (std::int64_t i = range.begin; i < range.end; ++i) {
    Rng rng(mix_bits(seed, static_cast<std::uint64_t>(step)), static_cast<std::uint64_t>(i));
    const std::uint64_t k = rng.below(static_cast<std::uint64_t>(starts.count()));
    offsets.push_back(starts.at(static_cast<std::int64_t>(k)));
  }
  return offsets;
}

std::vector<std::int64_t> fixed_offsets(const std::vector<CorpusSpan>& spans, std::int64_t context,
                                        std::int64_t most) {
  std::vector<std::int64_t> all;
  for (const CorpusSpan& span : spans) {
    for (std::int64_t at = span.begin; at + context < span.end; at += context) all.push_back(at);
  }
  const auto count = static_cast<std::int64_t>(all.size());
  if (count <= most) return all;
  std::vector<std::int64_t> chosen;
  for (std::int64_t i = 0; i < most; ++i) {
    chosen.push_back(all[at(i * count / most)]);
  }
  return chosen;
}

Batch token_batch(std::span<const std::int32_t> corpus, std::int64_t context,
                  std::span<const std::int64_t> offsets) {
  const auto count = static_cast<std::int64_t>(offsets.size());
  const auto type = at::dtype(at::kLong);
  Batch batch{.inputs = at::empty({count, context}, type),
              .targets = at::empty({count, context}, type)};
  auto* inputs = batch.inputs.mutable_data_ptr<std::int64_t>();
  auto* targets = batch.targets.mutable_data_ptr<std::int64_t>();
  for (const std::int64_t offset : offsets) {
    GOSSAMER_ASSERT(offset >= 0 && offset + context < static_cast<std::int64_t>(corpus.size()));
    const auto* text = corpus.data() + offset;
    inputs = std::copy(text, text + context, inputs);
    targets = std::copy(text + 1, text + 1 + context, targets);
  }
  return batch;
}

}  // namespace gossamer
