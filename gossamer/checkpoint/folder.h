#pragma once
/// What is in a folder of checkpoints: which are complete, which is the newest, which may go.

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace gossamer {

/// The file that names the checkpoint committed last.
inline constexpr std::string_view kLatestName = "latest";

/// What follows the name of a file or folder that is being made, or removed.
inline constexpr std::string_view kTemporaryMark = ".tmp-";

/// Checkpoints that have a manifest, of whatever content, the newest first: the one that `latest`
/// names, then those of earlier steps, then those of later steps, from which the run has returned.
/// A folder that does not exist has none.
std::vector<std::filesystem::path> checkpoints_in(const std::filesystem::path& folder);

/// Complete checkpoints (manifest sound, all files there with the right lengths), oldest first.
std::vector<std::filesystem::path> list_checkpoints(const std::filesystem::path& folder);

/// The checkpoint that `latest` names; where it names none that exists, the complete one with the
/// highest step. It is not verified: see verify_checkpoint().
std::optional<std::filesystem::path> latest_checkpoint(const std::filesystem::path& folder);

/// What to do about a damaged checkpoint: names the newest complete one of an earlier step beside
/// it; where hosts have disks of their own, the newest that is sound as far as this host has it.
std::string earlier_checkpoint(const std::filesystem::path& checkpoint);

/// Removes all that come after the `keep` newest sound ones in checkpoints_in(); never the one that
/// `latest` names. Files that other hosts have do not count. Throws IoError for what cannot be
/// removed, after the others; the next call tries again.
void prune_checkpoints(const std::filesystem::path& folder, int keep);

/// Removes a file or a folder with all in it, as far as that is possible.
void remove_quietly(const std::filesystem::path& path) noexcept;

/// Removes files and folders of kTemporaryMark, but for `except`, as far as that is possible.
void remove_leftovers(const std::filesystem::path& folder, const std::filesystem::path& except);

}  // namespace gossamer
