#include "gossamer/checkpoint/save.h"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <map>
#include <thread>

#include "gossamer/checkpoint/test_checkpoints.h"

namespace gossamer {
namespace checkpoint_test {

TEST(Checkpoint, RoundTripByWorkersInThreads) {
  const ScratchFolder folder;
  Manifest manifest;
  manifest.step = 120;
  manifest.workers = 4;
  manifest.files.resize(4);
  manifest.optimizer = "adamw";
  manifest.run = {{"topology", "ring"}};
  std::array<fs::path, 4> temporary;
  std::atomic<int> committers = 0;
  {
    std::vector<std::jthread> workers;
    for (int rank = 0; rank < 4; ++rank) {
      workers.emplace_back([&, rank, at = static_cast<std::size_t>(rank)] {
        const auto begun = begin_checkpoint(folder / "made" / "here", 120, "job7-1");
        committers += begun.commits ? 1 : 0;
        temporary[at] = begun.temporary;
        manifest.files[at] = write_worker(temporary[at], 120, rank);
      });
    }
  }
  EXPECT_EQ(committers, 1);
  EXPECT_EQ(temporary[0].filename(), "step-00000120.tmp-job7-1");
  EXPECT_EQ(temporary[0], temporary_checkpoint(folder / "made" / "here", 120, "job7-1"));
  const fs::path checkpoint = commit_checkpoint(temporary[0], folder / "made" / "here", manifest);
  EXPECT_EQ(checkpoint, folder / "made" / "here" / "step-00000120");
  EXPECT_EQ(names_in(checkpoint),
            (Names{"manifest.json", "worker-00000.safetensors", "worker-00001.safetensors",
                   "worker-00002.safetensors", "worker-00003.safetensors"}));
  EXPECT_EQ(names_in(folder / "made" / "here"), (Names{"latest", "step-00000120"}));
  EXPECT_NO_THROW(verify_checkpoint(checkpoint));
  const Manifest read = read_manifest(checkpoint);
  EXPECT_EQ(read.files, manifest.files);
  EXPECT_EQ(read.optimizer, "adamw");
  EXPECT_EQ(read.run, manifest.run);
  EXPECT_EQ(read.created.size(), std::string("2025-01-31T12:00:00Z").size());
  for (int rank = 0; rank < 4; ++rank) EXPECT_EQ(load(checkpoint, rank), state_of(120, rank));
  EXPECT_THROW(open_worker_file(checkpoint, read, 4), std::invalid_argument);
}

TEST(Checkpoint, CrashAfterAnyStageLeavesACompleteOne) {
  const ScratchFolder folder;
  save(folder.path(), 1);
  const fs::path temporary = begin(folder.path(), 2);
  expect_found(folder.path(), 1);
  // In the middle of a worker's file.
  put_file(temporary / (worker_file_name(0) + ".tmp-0123"), "half");
  expect_found(folder.path(), 1);
  Manifest manifest = write_workers(temporary, 2);
  expect_found(folder.path(), 1);
  put_file(temporary / "manifest.json.tmp-0123", "half");
  expect_found(folder.path(), 1);
  put_file(temporary / "manifest.json", manifest_text(manifest));
  expect_found(folder.path(), 1);
  fs::remove(temporary / "manifest.json.tmp-0123");
  // Named, but `latest` still on its way: the one before is what `latest` names.
  fs::rename(temporary, folder / "step-00000002");
  expect_found(folder.path(), 1);
  put_file(folder / "latest.tmp-0123", "step-000");
  expect_found(folder.path(), 1);
  // Without `latest`, what has its name is complete.
  fs::remove(folder / "latest");
  expect_found(folder.path(), 2);
}

TEST(Checkpoint, CrashAtTheFirstSaveLeavesNone) {
  const ScratchFolder folder;
  const fs::path temporary = begin(folder.path(), 1);
  put_file(temporary / "manifest.json", manifest_text(write_workers(temporary, 1)));
  EXPECT_EQ(latest_checkpoint(folder.path()), std::nullopt);
}

TEST(Checkpoint, NextSaveRemovesLeftoversAndNothingElse) {
  const ScratchFolder folder;
  save(folder.path(), 1);
  begin(folder.path(), 2);
  fs::create_directory(folder / "step-00000000.tmp-deleted");
  put_file(folder / "latest.tmp-0123", "");
  put_file(folder / "notes.tmp-mine", "");
  put_file(folder / "step-x.tmp-1", "");
  const BegunCheckpoint first = begin_checkpoint(folder.path(), 3, "a");
  const BegunCheckpoint second = begin_checkpoint(folder.path(), 3, "a");
  EXPECT_TRUE(first.commits);
  EXPECT_FALSE(second.commits);
  EXPECT_EQ(first.temporary, second.temporary);
  EXPECT_EQ(names_in(folder.path()), (Names{"latest", "notes.tmp-mine", "step-00000001",
                                            "step-00000003.tmp-a", "step-x.tmp-1"}));
  abandon_checkpoint(first.temporary);
  EXPECT_FALSE(fs::exists(first.temporary));
}

TEST(Checkpoint, SavingAStepAgainReplacesIt) {
  const ScratchFolder folder;
  const fs::path checkpoint = save(folder.path(), 5);
  put_file(checkpoint / worker_file_name(0), "damaged");
  EXPECT_THROW(verify_checkpoint(checkpoint), IoError);
  save(folder.path(), 5);
  expect_found(folder.path(), 5);
  EXPECT_EQ(names_in(folder.path()), (Names{"latest", "step-00000005"}));
}

TEST(Checkpoint, RepeatedAttemptLeavesNoFilesOfOthers) {
  const ScratchFolder folder;
  const fs::path temporary = begin_checkpoint(folder.path(), 5, "a").temporary;
  write_worker(temporary, 5, 7);
  const fs::path checkpoint =
      commit_checkpoint(temporary, folder.path(), write_workers(temporary, 5));
  EXPECT_EQ(names_in(checkpoint),
            (Names{"manifest.json", "worker-00000.safetensors", "worker-00001.safetensors"}));
}

TEST(Checkpoint, CommitRefusesFilesThatAreNotThere) {
  const ScratchFolder folder;
  save(folder.path(), 1);
  fs::path temporary = begin(folder.path(), 2);
  Manifest manifest = write_workers(temporary, 2);
  fs::remove(temporary / worker_file_name(1));
  const std::string missing =
      message_of<IoError>([&] { commit_checkpoint(temporary, folder.path(), manifest); });
  EXPECT_TRUE(contains(missing, "file of worker 1 is not there")) << missing;
  EXPECT_FALSE(fs::exists(temporary));
  temporary = begin(folder.path(), 2);
  manifest = write_workers(temporary, 2);
  fs::resize_file(temporary / worker_file_name(0), 5);
  const std::string shorter =
      message_of<IoError>([&] { commit_checkpoint(temporary, folder.path(), manifest); });
  EXPECT_TRUE(contains(shorter, "got 5 of ")) << shorter;
  expect_found(folder.path(), 1);
  EXPECT_EQ(names_in(folder.path()), (Names{"latest", "step-00000001"}));
}

/// Worker 0 on one host, worker 1 on another, with a disk each.
TEST(Checkpoint, HostsWithDisksOfTheirOwnCommitEachItsFiles) {
  const ScratchFolder disks[kWorkers];
  Manifest manifest;
  manifest.step = 7;
  manifest.created = "2025-01-31T12:00:00Z";
  manifest.workers = kWorkers;
  std::map<int, fs::path> temporary;
  for (int rank = 0; rank < kWorkers; ++rank) {
    const BegunCheckpoint begun = begin_checkpoint(disks[rank].path(), 7, "a");
    EXPECT_TRUE(begun.commits);
    temporary[rank] = begun.temporary;
    manifest.files.push_back(write_worker(begun.temporary, 7, rank));
  }
  for (const int rank : {0, 1}) {
    const fs::path checkpoint =
        commit_checkpoint(temporary[rank], disks[rank].path(), manifest, std::array{rank});
    EXPECT_EQ(names_in(checkpoint), (Names{"manifest.json", worker_file_name(rank)}));
    EXPECT_EQ(load(checkpoint, rank), state_of(7, rank));
    EXPECT_EQ(checkpoints_in(disks[rank].path()), std::vector{checkpoint});
    EXPECT_EQ(manifest_checksum(read_checkpoint(checkpoint)), manifest_checksum(manifest));
    const std::string other =
        message_of<IoError>([&] { open_worker_file(checkpoint, manifest, 1 - rank); });
    EXPECT_TRUE(contains(other, "is missing; copy it from the host that wrote it")) << other;
  }
}

TEST(Checkpoint, CommitWantsTheFilesOfItsHostAndTheLengthsOfAll) {
  const ScratchFolder folder;
  for (const int lost : {0, 1}) {
    const fs::path temporary = begin(folder.path(), 7);
    const Manifest manifest = write_workers(temporary, 7);
    fs::resize_file(temporary / worker_file_name(lost), 5);
    const auto commit = [&] {
      commit_checkpoint(temporary, folder.path(), manifest, std::array{0});
    };
    EXPECT_TRUE(contains(message_of<IoError>(commit), "is not what it wrote, got 5 of "));
  }
  const fs::path temporary = begin(folder.path(), 7);
  const Manifest manifest = write_workers(temporary, 7);
  fs::remove(temporary / worker_file_name(0));
  const auto commit = [&] { commit_checkpoint(temporary, folder.path(), manifest, std::array{0}); };
  EXPECT_TRUE(contains(message_of<IoError>(commit), "file of worker 0 is not there"));
  EXPECT_TRUE(fs::is_empty(folder.path()));
}

TEST(Checkpoint, FolderThatTakesNothingIsAnErrorWithPathAndReason) {
  const ScratchFolder folder;
  put_file(folder / "file", "");
  const std::string message =
      message_of<IoError>([&] { begin_checkpoint(folder / "file" / "checkpoints", 1, "a"); });
  EXPECT_TRUE(contains(message, (folder / "file" / "checkpoints").native())) << message;
  EXPECT_TRUE(contains(message, "Not a directory")) << message;
  const std::string gone = message_of<IoError>([&] { write_worker(folder / "gone", 1, 0); });
  EXPECT_TRUE(contains(gone, (folder / "gone" / worker_file_name(0)).native())) << gone;
  EXPECT_TRUE(contains(gone, "No such file or directory")) << gone;
}

TEST(Checkpoint, AttemptsThatCouldLeaveTheFolderAreRefused) {
  const ScratchFolder folder;
  for (const char* attempt : {"", "../x", "a/b", ".", "a b"}) {
    EXPECT_THROW(begin_checkpoint(folder.path(), 1, attempt), std::invalid_argument) << attempt;
  }
  EXPECT_THROW(begin_checkpoint(folder.path(), -1, "a"), std::invalid_argument);
  EXPECT_TRUE(fs::is_empty(folder.path()));
}

}  // namespace checkpoint_test
}  // namespace gossamer
