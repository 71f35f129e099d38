#include "gossamer/checkpoint/memory_folder.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>

#include "gossamer/base/errors.h"
#include "gossamer/base/scratch_folder.h"

namespace gossamer {
namespace memory_folder_test {

namespace fs = std::filesystem;

void let_be_old(const fs::path& folder) {
  const std::array<timespec, 2> old = {timespec{.tv_sec = 1, .tv_nsec = 0},
                                       timespec{.tv_sec = 1, .tv_nsec = 0}};
  ASSERT_EQ(::utimensat(AT_FDCWD, folder.c_str(), old.data(), 0), 0);
}

/// The folder of a process that was killed while it had one, with a file.
fs::path left_folder() {
  std::array<int, 2> ends = {};
  EXPECT_EQ(::pipe(ends.data()), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    const MemoryFolder folder;
    std::ofstream(folder.path() / "file") << "half";
    const std::string name = folder.path().native();
    if (::write(ends[1], name.data(), name.size()) > 0) ::raise(SIGKILL);
    ::_exit(1);
  }
  std::string name(1000, '\0');
  const ssize_t got = ::read(ends[0], name.data(), name.size());
  EXPECT_GT(got, 0);
  name.resize(static_cast<std::size_t>(got));
  ::waitpid(child, nullptr, 0);
  for (const int end : ends) ::close(end);
  return name;
}

TEST(MemoryFolder, IsGoneWithItsOwner) {
  fs::path path;
  {
    const MemoryFolder folder;
    path = folder.path();
    std::ofstream(path / "file") << "all";
    EXPECT_TRUE(fs::is_directory(path));
  }
  EXPECT_FALSE(fs::exists(path));
}

TEST(MemoryFolder, IsInTheFolderThatIsNamedOrTheFirstWithRoom) {
  const ScratchFolder named;
  ::setenv("GOSSAMER_STATE_FOLDER", named.path().c_str(), 1);
  EXPECT_EQ(MemoryFolder(1).path().parent_path(), named.path());
  ::unsetenv("GOSSAMER_STATE_FOLDER");
  const auto room = fs::space("/dev/shm").available;
  const fs::path next = fs::temp_directory_path();
  if (fs::space(next).available <= room + (1 << 30)) GTEST_SKIP() << "no larger folder here";
  const auto more = static_cast<std::int64_t>(room) + (1 << 29);  // the test may not be alone
  EXPECT_EQ(MemoryFolder(more).path().parent_path(), next);
}

TEST(MemoryFolder, SaysWhatHasNoRoom) {
  try {
    const MemoryFolder folder(std::int64_t{1} << 60);
    FAIL() << folder.path();
  } catch (const IoError& error) {
    const std::string said = error.what();
    EXPECT_NE(said.find(std::to_string(std::int64_t{1} << 60) + " bytes"), said.npos) << said;
    EXPECT_NE(said.find("/dev/shm with "), said.npos) << said;
    EXPECT_NE(said.find("GOSSAMER_STATE_FOLDER"), said.npos) << said;
  }
}

TEST(MemoryFolder, OfAKilledProcessIsRemovedByTheNext) {
  const fs::path left = left_folder();
  ASSERT_TRUE(fs::exists(left / "file"));
  std::optional<MemoryFolder> own;
  own.emplace();
  EXPECT_TRUE(fs::exists(left)) << "its process might be about to lock it";
  let_be_old(left);
  let_be_old(own->path());
  const MemoryFolder next;
  EXPECT_FALSE(fs::exists(left));
  EXPECT_TRUE(fs::exists(own->path())) << "somebody has it";
}

}  // namespace memory_folder_test
}  // namespace gossamer
