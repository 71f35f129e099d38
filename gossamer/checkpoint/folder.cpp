#include "gossamer/checkpoint/folder.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <limits>
#include <system_error>
#include <tuple>

#include "gossamer/base/disk.h"
#include "gossamer/base/errors.h"
#include "gossamer/checkpoint/manifest.h"

namespace gossamer {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kMaxLatestBytes = 4096;

std::int64_t step_of(const fs::path& checkpoint) {
  return checkpoint_step(checkpoint.filename().native()).value_or(-1);
}

/// Entries of a folder; none when it cannot be read.
std::vector<fs::path> entries_of(const fs::path& folder) {
  std::vector<fs::path> entries;
  std::error_code error;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    entries.push_back(at->path());
  }
  return entries;
}

/// Names that only this file makes: "step-00000120.tmp-…" and "latest.tmp-…".
bool is_temporary(const fs::path& path) {
  const std::string name = path.filename().native();
  const std::size_t mark = name.find(kTemporaryMark);
  if (mark == std::string::npos) return false;
  const std::string_view stem = std::string_view(name).substr(0, mark);
  return stem == kLatestName || checkpoint_step(stem).has_value();
}

/// What this host has of a checkpoint whose manifest is sound.
struct Present {
  std::size_t files = 0;
  bool all = true;   ///< every file is there
  bool fits = true;  ///< those that are there have their lengths
};

Present present_of(const fs::path& checkpoint, const Manifest& manifest) {
  Present present;
  for (const WorkerFile& file : manifest.files) {
    std::error_code error;
    const std::uintmax_t bytes = fs::file_size(checkpoint / file.name, error);
    if (error) {
      present.all = false;
      continue;
    }
    ++present.files;
    present.fits = present.fits && bytes == file.bytes;
  }
  return present;
}

/// Nothing where the manifest is not sound.
std::optional<Present> look_at(const fs::path& checkpoint) {
  try {
    return present_of(checkpoint, read_manifest(checkpoint));
  } catch (const IoError&) {
    return std::nullopt;
  }
}

bool is_complete(const fs::path& checkpoint) {
  const auto present = look_at(checkpoint);
  return present && present->all && present->fits;
}

/// As far as this host can tell.
bool is_sound(const fs::path& checkpoint) {
  const auto present = look_at(checkpoint);
  return present && present->files > 0 && present->fits;
}

/// The folder that `latest` names, whether or not it exists.
std::optional<fs::path> named_by_latest(const fs::path& folder) {
  std::error_code error;
  if (!fs::is_regular_file(folder / kLatestName, error)) return std::nullopt;
  const FileBytes bytes = read_file(folder / kLatestName, kMaxLatestBytes);
  std::string_view name(reinterpret_cast<const char*>(bytes.memory.get()), bytes.size);
  if (name.ends_with('\n')) name.remove_suffix(1);
  if (!checkpoint_step(name)) return std::nullopt;
  return folder / name;
}

bool has_manifest(const fs::path& checkpoint) {
  std::error_code error;
  return fs::exists(checkpoint / kManifestName, error);
}

}  // namespace

void remove_quietly(const fs::path& path) noexcept {
  std::error_code ignored;
  fs::remove_all(path, ignored);
}

std::vector<fs::path> checkpoints_in(const fs::path& folder) {
  std::vector<fs::path> found;
  for (const fs::path& entry : entries_of(folder)) {
    if (step_of(entry) >= 0 && has_manifest(entry)) found.push_back(entry);
  }
  const std::optional<fs::path> named = named_by_latest(folder);
  const bool is_named = named && has_manifest(*named);
  const std::int64_t last = is_named ? step_of(*named) : std::numeric_limits<std::int64_t>::max();
  std::sort(found.begin(), found.end(), [&](const fs::path& a, const fs::path& b) {
    const auto place = [&](const fs::path& path) {
      const std::int64_t step = step_of(path);
      return std::tuple(step > last, -step);
    };
    return place(a) < place(b);
  });
  return found;
}

std::vector<fs::path> list_checkpoints(const fs::path& folder) {
  std::vector<fs::path> complete = checkpoints_in(folder);
  std::erase_if(complete, [](const fs::path& each) { return !is_complete(each); });
  std::ranges::sort(complete, {}, step_of);
  return complete;
}

std::optional<fs::path> latest_checkpoint(const fs::path& folder) {
  const std::optional<fs::path> named = named_by_latest(folder);
  if (named && has_manifest(*named)) return named;
  const std::vector<fs::path> complete = list_checkpoints(folder);
  return complete.empty() ? std::nullopt : std::optional(complete.back());
}

std::string earlier_checkpoint(const fs::path& checkpoint) {
  const fs::path absolute = fs::absolute(checkpoint / ".").lexically_normal().parent_path();
  std::vector<fs::path> earlier = checkpoints_in(absolute.parent_path());
  const std::int64_t step = step_of(absolute);
  std::erase_if(earlier, [&](const fs::path& each) { return step_of(each) >= step; });
  auto found = std::ranges::find_if(earlier, is_complete);
  if (found == earlier.end()) found = std::ranges::find_if(earlier, is_sound);
  if (found == earlier.end()) return "there is no earlier checkpoint beside it: start anew";
  return "use the earlier checkpoint " + found->filename().native();
}

void prune_checkpoints(const fs::path& folder, int keep) {
  if (keep < 1) fail_argument({"checkpoint", "keep must be at least 1", std::to_string(keep)});
  const std::optional<fs::path> named = named_by_latest(folder);
  fs::path failed;
  int failure = 0;
  int sound = 0;
  for (const fs::path& checkpoint : checkpoints_in(folder)) {
    const bool is_kept = sound < keep || (named && checkpoint.filename() == named->filename());
    if (is_kept) {
      sound += is_sound(checkpoint) ? 1 : 0;
      continue;
    }
    // Renamed first: a crash in the middle must not leave half a checkpoint under a good name.
    fs::path doomed = checkpoint;
    doomed += std::string(kTemporaryMark) + unique_suffix();
    if (::rename(checkpoint.c_str(), doomed.c_str()) == 0) {
      remove_quietly(doomed);
    } else {
      failure = errno;
      failed = checkpoint;
    }
  }
  if (failure != 0) fail_system(failed, "cannot remove the old checkpoint", failure);
}

void remove_leftovers(const fs::path& folder, const fs::path& except) {
  for (const fs::path& entry : entries_of(folder)) {
    if (is_temporary(entry) && entry.filename() != except.filename()) remove_quietly(entry);
  }
}

}  // namespace gossamer
