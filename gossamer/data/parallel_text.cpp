#include "gossamer/data/parallel_text.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "gossamer/base/errors.h"
#include "gossamer/base/index.h"
#include "gossamer/base/rng.h"
#include "gossamer/data/read_bytes.h"

namespace gossamer {

std::vector<std::string> read_lines(const std::filesystem::path& path) {
  constexpr std::int64_t kMost = std::int64_t{4} << 30;
  const auto bytes = read_whole(path, kMost);
  std::vector<std::string> lines;
  for (auto begin = bytes.begin(); begin != bytes.end();) {
    const auto end = std::find(begin, bytes.end(), '\n');
    lines.emplace_back(begin, end);
    if (lines.back().ends_with('\r')) lines.back().pop_back();
    begin = end == bytes.end() ? end : end + 1;
  }
  return lines;
}

ParallelText read_parallel(const std::filesystem::path& sources,
                           const std::filesystem::path& targets) {
  ParallelText text{.sources = read_lines(sources), .targets = read_lines(targets)};
  if (text.sources.size() != text.targets.size() || text.sources.empty()) {
    fail_argument(
        {.place = "translation",
         .what = quoted(sources) + " and " + quoted(targets) +
                 " must have equally many lines, and some",
         .got = std::to_string(text.sources.size()) + " and " + std::to_string(text.targets.size()),
         .remedy = "line i of one must be the translation of line i of the other"});
  }
  return text;
}

std::int64_t PiecePair::length() const {
  return static_cast<std::int64_t>(std::max(source.size(), target.size())) + 1;
}

std::vector<PiecePair> encode(const ParallelText& text, const Vocabulary& vocabulary) {
  std::vector<PiecePair> pairs;
  for (std::size_t i = 0; i < text.sources.size(); ++i) {
    pairs.push_back({vocabulary.encode(text.sources[i]), vocabulary.encode(text.targets[i])});
  }
  return pairs;
}

void cut_long(std::vector<PiecePair>& pairs, std::int64_t context) {
  const auto most = static_cast<std::size_t>(context - 1);
  for (PiecePair& pair : pairs) {
    pair.source.resize(std::min(pair.source.size(), most));
    pair.target.resize(std::min(pair.target.size(), most));
  }
}

namespace {

using Batches = std::vector<std::vector<std::int64_t>>;

/// Pairs from long to short.
std::vector<std::int64_t> by_length(const std::vector<std::int64_t>& lengths, double jitter,
                                    std::uint64_t key) {
  std::vector<std::pair<double, std::int64_t>> drawn;
  Rng rng(key);
  for (std::size_t i = 0; i < lengths.size(); ++i) {
    drawn.emplace_back(-static_cast<double>(lengths[i]) - jitter * rng.uniform(),
                       static_cast<std::int64_t>(i));
  }
  std::ranges::sort(drawn);
  std::vector<std::int64_t> order;
  for (const auto& [negative_length, pair] : drawn) order.push_back(pair);
  return order;
}

/// What is left over for the last batch is shared with the one before, so that none is tiny.
void even_out_the_last(Batches& batches) {
  if (batches.size() < 2) return;
  auto& last = batches.back();
  auto& former = batches[batches.size() - 2];
  const auto moved =
      static_cast<std::ptrdiff_t>((former.size() - std::min(former.size(), last.size())) / 2);
  last.insert(last.begin(), former.end() - moved, former.end());
  former.resize(former.size() - static_cast<std::size_t>(moved));
}

}  // namespace

Batches token_batches(const std::vector<std::int64_t>& lengths, const TokenBatchPlan& plan,
                      std::int64_t epoch) {
  const std::uint64_t key = mix_bits(plan.seed, static_cast<std::uint64_t>(epoch));
  Batches batches;
  std::int64_t longest = 0;  // of the batch being filled
  for (const std::int64_t pair : by_length(lengths, plan.jitter, key)) {
    const std::int64_t length = lengths[at(pair)];
    if (length > plan.tokens) {
      fail_argument({.place = "translation",
                     .what = "every pair must fit in a global batch of " +
                             std::to_string(plan.tokens) + " tokens",
                     .got = std::to_string(length),
                     .remedy = "raise global_batch"});
    }
    longest = std::max(longest, length);
    const bool is_full =
        batches.empty() ||
        longest * (static_cast<std::int64_t>(batches.back().size()) + 1) > plan.tokens;
    if (is_full) {
      batches.emplace_back();
      longest = length;
    }
    batches.back().push_back(pair);
  }
  even_out_the_last(batches);
  Batches shuffled;
  for (std::size_t k = 0; k < batches.size(); ++k) {
    shuffled.push_back(std::move(batches[permuted(k, batches.size(), mix_bits(key, 1))]));
  }
  return shuffled;
}

std::vector<std::int64_t> dealt(const std::vector<std::int64_t>& batch, Shard shard) {
  if (batch.size() < static_cast<std::size_t>(shard.workers)) {
    fail_argument({.place = "translation",
                   .what = "a batch must have a pair for each worker",
                   .got = std::to_string(batch.size()) + " pairs for " +
                          std::to_string(shard.workers) + " workers",
                   .remedy = "raise global_batch"});
  }
  std::vector<std::int64_t> own;
  for (auto k = static_cast<std::size_t>(shard.worker); k < batch.size();
       k += static_cast<std::size_t>(shard.workers)) {
    own.push_back(batch[k]);
  }
  return own;
}

}  // namespace gossamer
