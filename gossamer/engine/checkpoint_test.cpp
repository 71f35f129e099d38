#include "gossamer/engine/checkpoint.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <thread>

#include "gossamer/base/test_folder.h"

namespace gossamer {
namespace checkpoint_test {

namespace fs = std::filesystem;

constexpr int kWorkers = 2;

/// What worker `rank` has at `step`: different for each.
std::array<float, 3> state_of(std::int64_t step, int rank) {
  return {static_cast<float>(step), static_cast<float>(rank), -0.0f};
}

WorkerFile write_worker(const fs::path& temporary, std::int64_t step, int rank) {
  const std::array<float, 3> state = state_of(step, rank);
  return write_worker_file(temporary, rank, std::vector{view_tensor("x", state)});
}

Manifest write_workers(const fs::path& temporary, std::int64_t step) {
  Manifest manifest;
  manifest.step = step;
  manifest.workers = kWorkers;
  for (int rank = 0; rank < kWorkers; ++rank) {
    manifest.files.push_back(write_worker(temporary, step, rank));
  }
  return manifest;
}

fs::path save(const fs::path& folder, std::int64_t step) {
  const fs::path temporary = begin_checkpoint(folder, step);
  return commit_checkpoint(temporary, folder, write_workers(temporary, step));
}

std::array<float, 3> load(const fs::path& checkpoint, int rank) {
  std::array<float, 3> state{};
  open_worker_file(checkpoint, read_manifest(checkpoint), rank).copy("x", state);
  return state;
}

std::vector<std::string> names_in(const fs::path& folder) {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder)) names.push_back(entry.path().filename());
  std::sort(names.begin(), names.end());
  return names;
}

using Names = std::vector<std::string>;

/// What must hold whenever a process dies: the checkpoint of `step` is found, sound and as written.
void expect_found(const fs::path& folder, std::int64_t step) {
  const auto found = latest_checkpoint(folder);
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->filename(), checkpoint_name(step));
  EXPECT_NO_THROW(verify_checkpoint(*found));
  for (int rank = 0; rank < kWorkers; ++rank) EXPECT_EQ(load(*found, rank), state_of(step, rank));
}

TEST(Checkpoint, RoundTripByWorkersInThreads) {
  const TestFolder folder;
  Manifest manifest;
  manifest.step = 120;
  manifest.workers = 4;
  manifest.files.resize(4);
  manifest.seed = 7;
  manifest.run = {{"topology", "ring"}};
  std::array<fs::path, 4> temporary;
  {
    std::vector<std::jthread> workers;
    for (int rank = 0; rank < 4; ++rank) {
      workers.emplace_back([&, rank, at = static_cast<std::size_t>(rank)] {
        temporary[at] = begin_checkpoint(folder / "made" / "here", 120, "job7-1");
        manifest.files[at] = write_worker(temporary[at], 120, rank);
      });
    }
  }
  EXPECT_EQ(temporary[0].filename(), "step-00000120.tmp-job7-1");
  const fs::path checkpoint = commit_checkpoint(temporary[0], folder / "made" / "here", manifest);
  EXPECT_EQ(checkpoint, folder / "made" / "here" / "step-00000120");
  EXPECT_EQ(names_in(checkpoint),
            (Names{"manifest.json", "worker-00000.safetensors", "worker-00001.safetensors",
                   "worker-00002.safetensors", "worker-00003.safetensors"}));
  EXPECT_EQ(names_in(folder / "made" / "here"), (Names{"latest", "step-00000120"}));
  EXPECT_NO_THROW(verify_checkpoint(checkpoint));
  const Manifest read = read_manifest(checkpoint);
  EXPECT_EQ(read.files, manifest.files);
  EXPECT_EQ(read.seed, 7u);
  EXPECT_EQ(read.run, manifest.run);
  EXPECT_EQ(read.created.size(), std::string("2025-01-31T12:00:00Z").size());
  for (int rank = 0; rank < 4; ++rank) EXPECT_EQ(load(checkpoint, rank), state_of(120, rank));
  EXPECT_THROW(open_worker_file(checkpoint, read, 4), std::invalid_argument);
}

TEST(Checkpoint, LatestIsTheOneCommittedLast) {
  const TestFolder folder;
  EXPECT_EQ(latest_checkpoint(folder.path()), std::nullopt);
  EXPECT_EQ(latest_checkpoint(folder / "none"), std::nullopt);
  save(folder.path(), 20);
  save(folder.path(), 30);
  save(folder.path(), 25);  // after a return to step 20
  expect_found(folder.path(), 25);
}

TEST(Checkpoint, LatestMissingDanglingOrGarbledMeansTheHighestComplete) {
  const TestFolder folder;
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
  const TestFolder folder;
  save(folder.path(), 1);
  fs::remove(save(folder.path(), 2) / "manifest.json");
  fs::remove(save(folder.path(), 3) / worker_file_name(1));
  fs::resize_file(save(folder.path(), 4) / worker_file_name(0), 100);
  fs::create_directory(folder / "step-00000005");
  put_file(folder / "step-00000006", "a file");
  fs::remove(folder / "latest");
  expect_found(folder.path(), 1);
}

TEST(Checkpoint, CrashAfterAnyStageLeavesACompleteOne) {
  const TestFolder folder;
  save(folder.path(), 1);
  const fs::path temporary = begin_checkpoint(folder.path(), 2);
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
  const TestFolder folder;
  const fs::path temporary = begin_checkpoint(folder.path(), 1);
  put_file(temporary / "manifest.json", manifest_text(write_workers(temporary, 1)));
  EXPECT_EQ(latest_checkpoint(folder.path()), std::nullopt);
}

TEST(Checkpoint, NextSaveRemovesLeftoversAndNothingElse) {
  const TestFolder folder;
  save(folder.path(), 1);
  begin_checkpoint(folder.path(), 2);
  fs::create_directory(folder / "step-00000000.tmp-deleted");
  put_file(folder / "latest.tmp-0123", "");
  put_file(folder / "notes.tmp-mine", "");
  put_file(folder / "step-x.tmp-1", "");
  const fs::path temporary = begin_checkpoint(folder.path(), 3, "a");
  EXPECT_EQ(begin_checkpoint(folder.path(), 3, "a"), temporary);
  EXPECT_EQ(names_in(folder.path()), (Names{"latest", "notes.tmp-mine", "step-00000001",
                                            "step-00000003.tmp-a", "step-x.tmp-1"}));
  abandon_checkpoint(temporary);
  EXPECT_FALSE(fs::exists(temporary));
}

TEST(Checkpoint, SavingAStepAgainReplacesIt) {
  const TestFolder folder;
  const fs::path checkpoint = save(folder.path(), 5);
  put_file(checkpoint / worker_file_name(0), "damaged");
  EXPECT_THROW(verify_checkpoint(checkpoint), IoError);
  save(folder.path(), 5);
  expect_found(folder.path(), 5);
  EXPECT_EQ(names_in(folder.path()), (Names{"latest", "step-00000005"}));
}

TEST(Checkpoint, RepeatedAttemptLeavesNoFilesOfOthers) {
  const TestFolder folder;
  const fs::path temporary = begin_checkpoint(folder.path(), 5, "a");
  write_worker(temporary, 5, 7);
  const fs::path checkpoint =
      commit_checkpoint(temporary, folder.path(), write_workers(temporary, 5));
  EXPECT_EQ(names_in(checkpoint),
            (Names{"manifest.json", "worker-00000.safetensors", "worker-00001.safetensors"}));
}

TEST(Checkpoint, CommitRefusesFilesThatAreNotThere) {
  const TestFolder folder;
  save(folder.path(), 1);
  fs::path temporary = begin_checkpoint(folder.path(), 2);
  Manifest manifest = write_workers(temporary, 2);
  fs::remove(temporary / worker_file_name(1));
  const std::string missing =
      message_of<IoError>([&] { commit_checkpoint(temporary, folder.path(), manifest); });
  EXPECT_TRUE(contains(missing, "file of worker 1 is not there")) << missing;
  EXPECT_FALSE(fs::exists(temporary));
  temporary = begin_checkpoint(folder.path(), 2);
  manifest = write_workers(temporary, 2);
  fs::resize_file(temporary / worker_file_name(0), 5);
  const std::string shorter =
      message_of<IoError>([&] { commit_checkpoint(temporary, folder.path(), manifest); });
  EXPECT_TRUE(contains(shorter, "got 5 of ")) << shorter;
  expect_found(folder.path(), 1);
  EXPECT_EQ(names_in(folder.path()), (Names{"latest", "step-00000001"}));
}

TEST(Checkpoint, FolderThatTakesNothingIsAnErrorWithPathAndReason) {
  const TestFolder folder;
  put_file(folder / "file", "");
  const std::string message =
      message_of<IoError>([&] { begin_checkpoint(folder / "file" / "checkpoints", 1); });
  EXPECT_TRUE(contains(message, (folder / "file" / "checkpoints").native())) << message;
  EXPECT_TRUE(contains(message, "Not a directory")) << message;
  const std::string gone = message_of<IoError>([&] { write_worker(folder / "gone", 1, 0); });
  EXPECT_TRUE(contains(gone, (folder / "gone" / worker_file_name(0)).native())) << gone;
  EXPECT_TRUE(contains(gone, "No such file or directory")) << gone;
}

TEST(Checkpoint, AttemptsThatCouldLeaveTheFolderAreRefused) {
  const TestFolder folder;
  for (const char* attempt : {"../x", "a/b", ".", "a b"}) {
    EXPECT_THROW(begin_checkpoint(folder.path(), 1, attempt), std::invalid_argument) << attempt;
  }
  EXPECT_THROW(begin_checkpoint(folder.path(), -1), std::invalid_argument);
  EXPECT_TRUE(fs::is_empty(folder.path()));
}

TEST(CheckpointVerify, EveryFlippedBitOfAFileIsSeen) {
  const TestFolder folder;
  save(folder.path(), 10);
  const fs::path checkpoint = save(folder.path(), 20);
  const Manifest manifest = read_manifest(checkpoint);
  const fs::path file = checkpoint / worker_file_name(1);
  const std::string whole = get_file(file);
  for (std::size_t at = 0; at < whole.size(); ++at) {
    std::string altered = whole;
    altered[at] = static_cast<char>(altered[at] ^ (1 << (at % 8)));
    put_file(file, altered);
    const std::string message = message_of<IoError>([&] { verify_checkpoint(checkpoint); });
    EXPECT_TRUE(contains(message, file.native() + "] is altered")) << message;
    EXPECT_TRUE(contains(message, "use the earlier checkpoint step-00000010")) << message;
    EXPECT_THROW(open_worker_file(checkpoint, manifest, 1), IoError) << at;
  }
  put_file(file, whole);
  EXPECT_NO_THROW(verify_checkpoint(checkpoint));
}

TEST(CheckpointVerify, EveryTruncationIsNamedWithBothLengths) {
  const TestFolder folder;
  const fs::path checkpoint = save(folder.path(), 20);
  const Manifest manifest = read_manifest(checkpoint);
  const fs::path file = checkpoint / worker_file_name(0);
  const std::string whole = get_file(file);
  for (std::size_t length = 0; length < whole.size(); ++length) {
    put_file(file, whole.substr(0, length));
    const std::string says = "is truncated, got " + std::to_string(length) + " of " +
                             std::to_string(whole.size()) + " bytes; there is no earlier";
    const auto verify = message_of<IoError>([&] { verify_checkpoint(checkpoint); });
    const auto open = message_of<IoError>([&] { open_worker_file(checkpoint, manifest, 0); });
    EXPECT_TRUE(contains(verify, says)) << verify;
    EXPECT_TRUE(contains(open, says)) << open;
  }
  put_file(file, whole + "x");
  const auto longer = message_of<IoError>([&] { verify_checkpoint(checkpoint); });
  EXPECT_TRUE(contains(longer, "is longer than when it was written")) << longer;
}

TEST(CheckpointVerify, MissingFilesAreNamed) {
  const TestFolder folder;
  save(folder.path(), 10);
  const fs::path checkpoint = save(folder.path(), 20);
  fs::remove(checkpoint / worker_file_name(1));
  const auto worker = message_of<IoError>([&] { verify_checkpoint(checkpoint / ""); });
  EXPECT_TRUE(contains(worker, "the file of worker 1 is missing")) << worker;
  EXPECT_TRUE(contains(worker, "use the earlier checkpoint step-00000010")) << worker;
  fs::remove(checkpoint / "manifest.json");
  EXPECT_TRUE(
      contains(message_of<IoError>([&] { verify_checkpoint(checkpoint); }), "not complete"));
}

TEST(CheckpointPrune, KeepsTheNewestAndTheOneThatLatestNames) {
  const TestFolder folder;
  for (std::int64_t step : {1, 2, 3, 4, 5}) save(folder.path(), step);
  prune_checkpoints(folder.path(), 7);
  EXPECT_EQ(list_checkpoints(folder.path()).size(), 5u);
  prune_checkpoints(folder.path(), 3);
  EXPECT_EQ(names_in(folder.path()),
            (Names{"latest", "step-00000003", "step-00000004", "step-00000005"}));
  put_file(folder / "latest", "step-00000003\n");
  prune_checkpoints(folder.path(), 1);
  EXPECT_EQ(names_in(folder.path()), (Names{"latest", "step-00000003", "step-00000005"}));
  EXPECT_THROW(prune_checkpoints(folder.path(), 0), std::invalid_argument);
}

}  // namespace checkpoint_test
}  // namespace gossamer
