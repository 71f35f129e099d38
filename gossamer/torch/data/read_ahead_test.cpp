#include "gossamer/torch/data/read_ahead.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <atomic>
#include <set>
#include <stdexcept>
#include <thread>

namespace gossamer {
namespace {

Batch batch_of_step(std::int64_t step, Shard shard) {
  return {.inputs = at::tensor({static_cast<float>(step), static_cast<float>(shard.worker)}),
          .targets = {}};
}

/// Counts who makes what.
struct Maker {
  std::mutex mutex;
  std::multiset<std::int64_t> made;
  std::set<std::thread::id> threads;

  ReadAhead::Make make() {
    return [this](std::int64_t step, Shard shard) {
      const std::lock_guard lock(mutex);
      made.insert(step);
      threads.insert(std::this_thread::get_id());
      return batch_of_step(step, shard);
    };
  }
};

TEST(ReadAhead, GivesTheBatchesInWhateverOrderTheyAreAskedFor) {
  for (const int ahead : {0, 1, 3}) {
    ReadAhead reader(batch_of_step, ahead);
    for (const std::int64_t step : {0, 1, 2, 3, 7, 8, 2, 2, 3, 0}) {
      for (int worker = 0; worker < 3; ++worker) {
        const Shard shard{.worker = worker, .workers = 3};
        EXPECT_TRUE(at::equal(reader.batch(step, shard).inputs, batch_of_step(step, shard).inputs));
      }
    }
  }
}

TEST(ReadAhead, MakesEachBatchOnceAndAllButTheFirstInOtherThreads) {
  Maker maker;
  {
    ReadAhead reader(maker.make(), 2);
    for (std::int64_t step = 0; step < 10; ++step) reader.batch(step, {});
  }
  for (std::int64_t step = 0; step < 12; ++step) EXPECT_EQ(maker.made.count(step), 1u) << step;
  EXPECT_GT(maker.threads.size(), 1u);
  Maker alone;
  ReadAhead reader(alone.make(), 0);
  for (std::int64_t step = 0; step < 10; ++step) reader.batch(step, {});
  EXPECT_EQ(alone.threads, std::set{std::this_thread::get_id()});
}

TEST(ReadAhead, AFaultIsThrownInTheStepThatHasIt) {
  ReadAhead reader(
      [](std::int64_t step, Shard shard) {
        if (step == 2) throw std::runtime_error("step two");
        return batch_of_step(step, shard);
      },
      2);
  EXPECT_NO_THROW(reader.batch(0, {}));
  EXPECT_NO_THROW(reader.batch(1, {}));
  EXPECT_THROW(reader.batch(2, {}), std::runtime_error);
  EXPECT_NO_THROW(reader.batch(3, {}));
}

TEST(ReadAhead, WorkersOfOneProcessAskSideBySide) {
  ReadAhead reader(batch_of_step, 1);
  std::atomic<int> wrong = 0;
  std::vector<std::jthread> threads;
  for (int worker = 0; worker < 4; ++worker) {
    threads.emplace_back([&, worker] {
      for (std::int64_t step = 0; step < 50; ++step) {
        const Shard shard{.worker = worker, .workers = 4};
        if (!at::equal(reader.batch(step, shard).inputs, batch_of_step(step, shard).inputs))
          ++wrong;
      }
    });
  }
  threads.clear();
  EXPECT_EQ(wrong, 0);
}

}  // namespace
}  // namespace gossamer
