#include "gossamer/data/parallel_text.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "gossamer/base/index.h"
#include "gossamer/base/rng.h"
#include "gossamer/data/data_fixture.h"

namespace gossamer {
namespace {

TEST(TokenBatches, HaveEveryPairOnceAndNoTokenTooMany) {
  for (const std::int64_t count : {1, 7, 100, 1000}) {
    std::vector<std::int64_t> lengths;
    Rng rng(3, static_cast<std::uint64_t>(count));
    for (std::int64_t i = 0; i < count; ++i)
      lengths.push_back(1 + static_cast<std::int64_t>(rng.below(40)));
    for (const std::int64_t epoch : {0, 1}) {
      std::set<std::int64_t> seen;
      for (const auto& batch : token_batches(lengths, {.tokens = 120, .seed = 9}, epoch)) {
        std::int64_t longest = 0;
        for (const std::int64_t pair : batch) {
          EXPECT_TRUE(seen.insert(pair).second);
          longest = std::max(longest, lengths[at(pair)]);
        }
        EXPECT_LE(longest * std::ssize(batch), 120);
        EXPECT_FALSE(batch.empty());
      }
      EXPECT_EQ(std::ssize(seen), count);
    }
  }
}

TEST(TokenBatches, NoneIsTinyWhereManyFit) {
  std::vector<std::int64_t> lengths(1001, 10);
  for (const auto& batch : token_batches(lengths, {.tokens = 1000}, 0)) {
    EXPECT_GE(batch.size(), 50u);
  }
}

TEST(TokenBatches, DifferBySeedAndEpochOnly) {
  std::vector<std::int64_t> lengths;
  for (std::int64_t i = 0; i < 500; ++i) lengths.push_back(1 + i % 37);
  const TokenBatchPlan plan{.tokens = 200, .seed = 4};
  EXPECT_EQ(token_batches(lengths, plan, 2), token_batches(lengths, plan, 2));
  EXPECT_NE(token_batches(lengths, plan, 2), token_batches(lengths, plan, 3));
  EXPECT_NE(token_batches(lengths, plan, 2), token_batches(lengths, {.tokens = 200, .seed = 5}, 2));
}

TEST(TokenBatches, RefuseWhatFitsNowhere) {
  EXPECT_THROW(token_batches({3, 50}, {.tokens = 49}, 0), std::invalid_argument);
  EXPECT_THROW(dealt({1, 2, 3}, {0, 4}), std::invalid_argument);
}

TEST(TokenBatches, WorkersTogetherHaveTheGlobalBatch) {
  const std::vector<std::int64_t> batch{4, 8, 15, 16, 23, 42, 108};
  for (int workers = 1; workers <= 7; ++workers) {
    std::vector<std::int64_t> all;
    for (int worker = 0; worker < workers; ++worker) {
      const auto own = dealt(batch, {worker, workers});
      all.insert(all.end(), own.begin(), own.end());
    }
    std::ranges::sort(all);
    EXPECT_EQ(all, batch);
  }
}

TEST_F(DataFiles, LinesEndInEitherWay) {
  const std::vector<std::string> lines{"a", "", "b c"};
  EXPECT_EQ(read_lines(write_lines("unix", lines)), lines);
  EXPECT_EQ(read_lines(write_lines("dos", lines, "\r\n")), lines);
}

TEST_F(DataFiles, FilesOfDifferentLengthsAreRefused) {
  EXPECT_THROW(read_parallel(write_lines("two", {"a", "b"}), write_lines("one", {"a"})),
               std::invalid_argument);
  EXPECT_THROW(read_parallel(write_lines("none", {}), write_lines("none", {})),
               std::invalid_argument);
}

}  // namespace
}  // namespace gossamer
