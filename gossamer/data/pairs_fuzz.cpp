// Two files of sentences, packed by gzip or not, and the batches of their lines.

#include <set>

#include "gossamer/base/fuzz.h"
#include "gossamer/base/gzip.h"
#include "gossamer/base/scratch_folder.h"
#include "gossamer/data/byte_corpus.h"
#include "gossamer/data/parallel_text.h"

namespace gossamer {
namespace {

void check_batches(const ParallelText& text, FuzzBytes& plan) {
  std::vector<std::int64_t> lengths;
  for (std::size_t i = 0; i < text.sources.size(); ++i) {
    lengths.push_back(std::ssize(text.sources[i]) + std::ssize(text.targets[i]) + 1);
  }
  const std::int64_t tokens = plan.take<std::uint16_t>();
  const std::uint64_t seed = plan.take<std::uint8_t>();
  std::set<std::int64_t> seen;
  for (const auto& batch : token_batches(lengths, {.tokens = tokens, .seed = seed}, 1)) {
    fuzz_check(!batch.empty(), "no batch is empty");
    for (const std::int64_t pair : batch) fuzz_check(seen.insert(pair).second, "a pair comes once");
  }
  fuzz_check(seen.size() == lengths.size(), "every pair comes");
}

}  // namespace

bool fuzz_pairs(std::span<const std::byte> bytes) {
  FuzzBytes input(bytes);
  const std::uint8_t packed = input.take<std::uint8_t>();
  FuzzBytes plan(input.take_bytes(3));
  const std::string sources(input.take_text(input.take<std::uint16_t>()));
  const std::string targets(input.text());
  const ScratchFolder folder;
  const auto path = folder.put("sources", packed % 2 != 0 ? gzipped(sources) : sources);
  const auto other = folder.put("targets", packed / 2 % 2 != 0 ? gzipped(targets) : targets);
  return takes([&] {
    const ParallelText text = read_parallel(path, other);
    fuzz_check(text.sources.size() == text.targets.size() && !text.sources.empty(), "pairs");
    for (const std::string& line : text.sources) {
      fuzz_check(line.find('\n') == std::string::npos, "a line ends");
    }
    const auto all = static_cast<std::int64_t>(read_corpus(folder.path(), {}).size());
    fuzz_check(all == std::ssize(sources) + std::ssize(targets), "a corpus is its files");
    check_batches(text, plan);
  });
}

}  // namespace gossamer
