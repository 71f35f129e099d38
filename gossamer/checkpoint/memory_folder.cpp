#include "gossamer/checkpoint/memory_folder.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <ctime>
#include <string>
#include <system_error>
#include <vector>

#include "gossamer/base/errors.h"
#include "gossamer/checkpoint/folder.h"

namespace gossamer {
namespace {

namespace fs = std::filesystem;

constexpr const char* kVariable = "GOSSAMER_STATE_FOLDER";
constexpr const char* kMemory = "/dev/shm";
constexpr const char* kPrefix = "gossamer-state-";
constexpr std::time_t kYoungS = 10;

Descriptor locked(const fs::path& folder) {
  Descriptor descriptor(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (descriptor && ::flock(descriptor.get(), LOCK_EX | LOCK_NB) != 0) descriptor.reset();
  return descriptor;
}

/// See Note [Folders of killed processes].
void remove_left_ones(const fs::path& parent) {
  std::error_code ignored;
  for (const fs::directory_entry& entry : fs::directory_iterator(parent, ignored)) {
    if (!entry.path().filename().native().starts_with(kPrefix)) continue;
    struct stat found = {};
    if (::lstat(entry.path().c_str(), &found) != 0 || found.st_uid != ::getuid()) continue;
    if (std::time(nullptr) - found.st_mtime < kYoungS) continue;
    if (locked(entry.path())) remove_quietly(entry.path());
  }
}

/// Where the state of a worker may lie, the best first.
std::vector<fs::path> candidates() {
  const char* named = std::getenv(kVariable);
  if (named != nullptr && *named != '\0') return {named};
  std::error_code ignored;
  std::vector<fs::path> found;
  if (fs::is_directory(kMemory, ignored)) found.emplace_back(kMemory);
  found.push_back(fs::temp_directory_path());
  return found;
}

fs::path parent_with_room(std::int64_t bytes) {
  std::string looked_at;
  for (const fs::path& folder : candidates()) {
    std::error_code problem;
    const fs::space_info space = fs::space(folder, problem);
    if (!problem && space.available >= static_cast<std::uintmax_t>(bytes)) return folder;
    if (!looked_at.empty()) looked_at += ", ";
    looked_at += folder.native() + " with " +
                 (problem ? problem.message() : std::to_string(space.available) + " bytes free");
  }
  fail_io({.place = "checkpoint",
           .what = "no folder has room for the state of a worker that comes back, " +
                   std::to_string(bytes) + " bytes",
           .got = looked_at,
           .remedy = std::string("let ") + kVariable + " name a folder that has"});
}

}  // namespace

MemoryFolder::MemoryFolder(std::int64_t bytes) {
  const fs::path parent = parent_with_room(bytes);
  remove_left_ones(parent);
  std::string name = (parent / (std::string(kPrefix) + "XXXXXX")).native();
  if (::mkdtemp(name.data()) == nullptr) {
    fail_io({.place = "checkpoint",
             .what = "no folder for the state of a worker that comes back",
             .got = std::generic_category().message(errno),
             .remedy = "make room in " + parent.native()});
  }
  path_ = name;
  lock_ = locked(path_);
}

MemoryFolder::~MemoryFolder() { remove_quietly(path_); }

}  // namespace gossamer
