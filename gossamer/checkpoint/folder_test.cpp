#include "gossamer/checkpoint/folder.h"

#include <gtest/gtest.h>

#include "gossamer/checkpoint/test_checkpoints.h"

namespace gossamer {
namespace checkpoint_test {

TEST(Checkpoint, LatestIsTheOneCommittedLast) {
  const ScratchFolder folder;
  EXPECT_EQ(latest_checkpoint(folder.path()), std::nullopt);
  EXPECT_EQ(latest_checkpoint(folder / "none"), std::nullopt);
  save(folder.path(), 20);
  save(folder.path(), 30);
  save(folder.path(), 25);  // after a return to step 20
  expect_found(folder.path(), 25);
}

TEST(Checkpoint, LatestMissingDanglingOrGarbledMeansTheHighestComplete) {
  const ScratchFolder folder;
  save(folder.path(), 9);
  save(folder.path(), 10);
  fs::remove(folder / "latest");
  expect_found(folder.path(), 10);
  for (const char* text : {"step-00000099\n", "", "../step-00000009\n", "\xff\n"}) {
    put_file(folder / "latest", text);
    expect_found(folder.path(), 10);
  }
  put_file(folder / "latest", std::string("step-00000009"));
  expect_found(folder.path(), 9);
}

TEST(Checkpoint, ScanPassesOverWhatIsNotComplete) {
  const ScratchFolder folder;
  save(folder.path(), 1);
  fs::remove(save(folder.path(), 2) / "manifest.json");
  fs::remove(save(folder.path(), 3) / worker_file_name(1));
  fs::resize_file(save(folder.path(), 4) / worker_file_name(0), 100);
  fs::create_directory(folder / "step-00000005");
  put_file(folder / "step-00000006", "a file");
  fs::remove(folder / "latest");
  expect_found(folder.path(), 1);
}

TEST(CheckpointOrder, BeginsWithLatestAndEndsWithLaterSteps) {
  const ScratchFolder folder;
  for (std::int64_t step : {10, 20, 30, 40}) save(folder.path(), step);
  fs::create_directory(folder / "step-00000050");
  const auto names = [&] {
    Names found;
    for (const fs::path& each : checkpoints_in(folder.path())) found.push_back(each.filename());
    return found;
  };
  EXPECT_EQ(names(), (Names{"step-00000040", "step-00000030", "step-00000020", "step-00000010"}));
  put_file(folder / "latest", "step-00000020\n");
  EXPECT_EQ(names(), (Names{"step-00000020", "step-00000010", "step-00000040", "step-00000030"}));
  put_file(folder / "latest", "step-00000050\n");  // which has no manifest
  EXPECT_EQ(names(), (Names{"step-00000040", "step-00000030", "step-00000020", "step-00000010"}));
  EXPECT_TRUE(checkpoints_in(folder / "none").empty());
}

TEST(CheckpointPrune, KeepsTheNewestFromTheOneThatLatestNames) {
  const ScratchFolder folder;
  for (std::int64_t step : {1, 2, 3, 4, 5}) save(folder.path(), step);
  prune_checkpoints(folder.path(), 7);
  EXPECT_EQ(list_checkpoints(folder.path()).size(), 5u);
  prune_checkpoints(folder.path(), 3);
  EXPECT_EQ(names_in(folder.path()),
            (Names{"latest", "step-00000003", "step-00000004", "step-00000005"}));
  put_file(folder / "latest", "step-00000004\n");  // the run has returned
  prune_checkpoints(folder.path(), 2);
  EXPECT_EQ(names_in(folder.path()), (Names{"latest", "step-00000003", "step-00000004"}));
  prune_checkpoints(folder.path(), 1);
  EXPECT_EQ(names_in(folder.path()), (Names{"latest", "step-00000004"}));
  EXPECT_THROW(prune_checkpoints(folder.path(), 0), std::invalid_argument);
}

TEST(CheckpointPrune, DamagedOnesCountForNothing) {
  const ScratchFolder folder;
  for (std::int64_t step : {1, 2, 3, 4}) save(folder.path(), step);
  put_file(folder / "step-00000003" / "manifest.json", "{}");
  fs::resize_file(folder / "step-00000002" / worker_file_name(0), 5);
  prune_checkpoints(folder.path(), 2);
  EXPECT_EQ(list_checkpoints(folder.path()).size(), 2u);
  save(folder.path(), 5);
  prune_checkpoints(folder.path(), 2);
  EXPECT_EQ(names_in(folder.path()), (Names{"latest", "step-00000004", "step-00000005"}));
}

TEST(CheckpointPrune, FilesOfOtherHostsAreNotMissed) {
  const ScratchFolder folder;
  for (std::int64_t step : {1, 2, 3}) fs::remove(save(folder.path(), step) / worker_file_name(1));
  prune_checkpoints(folder.path(), 2);
  EXPECT_EQ(names_in(folder.path()), (Names{"latest", "step-00000002", "step-00000003"}));
  EXPECT_EQ(earlier_checkpoint(folder / "step-00000003"),
            "use the earlier checkpoint step-00000002");
  EXPECT_TRUE(contains(earlier_checkpoint(folder / "step-00000002"), "no earlier checkpoint"));
}

}  // namespace checkpoint_test
}  // namespace gossamer
