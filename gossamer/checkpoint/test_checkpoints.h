#pragma once
/// For tests of checkpoints: two workers that save into a folder, and what must be found there.

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "gossamer/base/test_folder.h"
#include "gossamer/checkpoint/folder.h"
#include "gossamer/checkpoint/load.h"
#include "gossamer/checkpoint/save.h"

namespace gossamer {
namespace checkpoint_test {

namespace fs = std::filesystem;

inline constexpr int kWorkers = 2;

/// What worker `rank` has at `step`: different for each.
inline std::array<float, 3> state_of(std::int64_t step, int rank) {
  return {static_cast<float>(step), static_cast<float>(rank), -0.0f};
}

inline WorkerFile write_worker(const fs::path& temporary, std::int64_t step, int rank) {
  const std::array<float, 3> state = state_of(step, rank);
  return write_worker_file(temporary, rank, std::vector{view_tensor("x", state)});
}

inline Manifest write_workers(const fs::path& temporary, std::int64_t step) {
  Manifest manifest;
  manifest.step = step;
  manifest.workers = kWorkers;
  for (int rank = 0; rank < kWorkers; ++rank) {
    manifest.files.push_back(write_worker(temporary, step, rank));
  }
  return manifest;
}

/// As the first of the workers, with a word that no other save has.
inline fs::path begin(const fs::path& folder, std::int64_t step) {
  const BegunCheckpoint begun = begin_checkpoint(folder, step, unique_suffix());
  EXPECT_TRUE(begun.commits);
  return begun.temporary;
}

inline fs::path save(const fs::path& folder, std::int64_t step) {
  const fs::path temporary = begin(folder, step);
  return commit_checkpoint(temporary, folder, write_workers(temporary, step));
}

inline std::array<float, 3> load(const fs::path& checkpoint, int rank) {
  std::array<float, 3> state{};
  open_worker_file(checkpoint, read_manifest(checkpoint), rank).copy("x", state);
  return state;
}

using Names = std::vector<std::string>;

inline Names names_in(const fs::path& folder) {
  Names names;
  for (const auto& entry : fs::directory_iterator(folder)) names.push_back(entry.path().filename());
  std::sort(names.begin(), names.end());
  return names;
}

/// What must hold whenever a process dies: the checkpoint of `step` is found, sound and as written.
inline void expect_found(const fs::path& folder, std::int64_t step) {
  const auto found = latest_checkpoint(folder);
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->filename(), checkpoint_name(step));
  EXPECT_NO_THROW(verify_checkpoint(*found));
  for (int rank = 0; rank < kWorkers; ++rank) EXPECT_EQ(load(*found, rank), state_of(step, rank));
}

}  // namespace checkpoint_test
}  // namespace gossamer
