#include "gossamer/checkpoint/save.h"

#include <fcntl.h>
#include <stdio.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <ctime>
#include <string>
#include <system_error>
#include <vector>

#include "gossamer/base/disk.h"
#include "gossamer/base/errors.h"
#include "gossamer/checkpoint/folder.h"

namespace gossamer {
namespace {

namespace fs = std::filesystem;

void check_attempt(std::string_view attempt) {
  const auto fits = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '-' || c == '_';
  };
  if (!attempt.empty() && attempt.size() <= 64 && std::all_of(attempt.begin(), attempt.end(), fits))
    return;
  fail_argument({"checkpoint", "an attempt must be 1 to 64 letters, digits, '-' and '_'",
                 "'" + std::string(attempt) + "'"});
}

/// The folder that holds `path`, also where `path` is relative or ends in a slash.
fs::path parent_of(const fs::path& path) {
  return fs::absolute(path / ".").lexically_normal().parent_path().parent_path();
}

void make_folder(const fs::path& folder) {
  std::error_code error;
  const bool made = fs::create_directories(folder, error);
  if (error) fail_system(folder, "cannot make the folder", error.value());
  if (made) sync_folder(parent_of(folder));
}

std::string now_utc() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  ::gmtime_r(&now, &parts);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts);
  return text;
}

/// Commit checks what is there before anything is given a name: a file that this worker does not
/// see is on a disk of another host, or lost.
void check_files(const fs::path& temporary, const Manifest& manifest, std::span<const int> here) {
  for (const WorkerFile& file : manifest.files) {
    const bool must_be_here = here.empty() || std::ranges::count(here, file.rank) != 0;
    const fs::path path = temporary / file.name;
    const std::string whose = "the file of worker " + std::to_string(file.rank);
    std::error_code error;
    const std::uintmax_t bytes = fs::file_size(path, error);
    if (error && must_be_here) {
      fail_io({path.native(), whose + " is not there", "'" + error.message() + "'",
               "use a folder that all workers share"});
    }
    if (!error && bytes != file.bytes) {
      fail_io({path.native(), whose + " is not what it wrote",
               std::to_string(bytes) + " of " + std::to_string(file.bytes) + " bytes",
               "check the disk"});
    }
  }
}

/// Whatever is not of this save.
void remove_unlisted(const fs::path& temporary, const Manifest& manifest) {
  std::vector<fs::path> unlisted;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(temporary, ignored)) {
    const std::string name = entry.path().filename();
    if (std::ranges::count(manifest.files, name, &WorkerFile::name) == 0) {
      unlisted.push_back(entry.path());
    }
  }
  for (const fs::path& each : unlisted) remove_quietly(each);
}

/// Gives the temporary folder its final name. Where a checkpoint of the name exists, the two swap
/// in one step, so that there is always one; file systems without that step get two renames.
void give_name(const fs::path& temporary, const fs::path& final_path) {
  std::error_code error;
  if (!fs::exists(final_path, error)) {
    if (::rename(temporary.c_str(), final_path.c_str()) == 0) return;
    fail_system(final_path, "cannot give the checkpoint its name", errno);
  }
  constexpr int kHere = AT_FDCWD;
  if (::renameat2(kHere, temporary.c_str(), kHere, final_path.c_str(), RENAME_EXCHANGE) == 0) {
    return;
  }
  const std::string_view what = "cannot replace the checkpoint of this step";
  if (errno != EINVAL && errno != ENOSYS) fail_system(final_path, what, errno);
  fs::path aside = final_path;
  aside += std::string(kTemporaryMark) + unique_suffix();
  if (::rename(final_path.c_str(), aside.c_str()) != 0) fail_system(final_path, what, errno);
  if (::rename(temporary.c_str(), final_path.c_str()) != 0) {
    const int failed = errno;
    fs::rename(aside, final_path, error);
    fail_system(final_path, what, failed);
  }
  remove_quietly(aside);
}

}  // namespace

fs::path temporary_checkpoint(const fs::path& folder, std::int64_t step, std::string_view attempt) {
  check_attempt(attempt);
  return folder / checkpoint_name(step).append(kTemporaryMark).append(attempt);
}

BegunCheckpoint begin_checkpoint(const fs::path& folder, std::int64_t step,
                                 std::string_view attempt) {
  const fs::path temporary = temporary_checkpoint(folder, step, attempt);
  make_folder(folder);
  remove_leftovers(folder, temporary);
  std::error_code error;
  const bool is_first = fs::create_directory(temporary, error);
  if (error) fail_system(temporary, "cannot make the folder", error.value());
  return {temporary, is_first};
}

WorkerFile write_worker_file(const fs::path& temporary, int rank,
                             std::span<const TensorView> tensors, const TensorMetadata& metadata) {
  return worker_file(rank,
                     write_safetensors(temporary / worker_file_name(rank), tensors, metadata));
}

fs::path commit_checkpoint(const fs::path& temporary, const fs::path& folder, Manifest manifest,
                           std::span<const int> here) {
  check_manifest(manifest);
  if (manifest.created.empty()) manifest.created = now_utc();
  const std::string text = manifest_text(manifest);
  const fs::path final_path = folder / checkpoint_name(manifest.step);
  try {
    check_files(temporary, manifest, here);
    remove_unlisted(temporary, manifest);
    write_file(temporary / kManifestName, text);  // brings the folder to the disk, too
    give_name(temporary, final_path);
    sync_folder(folder);
  } catch (const IoError&) {
    remove_quietly(temporary);
    throw;
  }
  write_file(folder / kLatestName, final_path.filename().native() + "\n");
  remove_quietly(temporary);  // after a swap it holds what was replaced
  return final_path;
}

void abandon_checkpoint(const fs::path& temporary) noexcept { remove_quietly(temporary); }

}  // namespace gossamer
