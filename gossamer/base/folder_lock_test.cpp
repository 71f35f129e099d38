#include "gossamer/base/folder_lock.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <thread>

#include "gossamer/base/errors.h"
#include "gossamer/base/test_errors.h"

namespace gossamer {
namespace {

struct Folder {
  std::filesystem::path path;
  Folder() : path(::testing::TempDir() + "lock-" + std::to_string(::getpid())) {
    std::filesystem::create_directories(path);
  }
  ~Folder() { std::filesystem::remove_all(path); }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
};

/// Whether another process can take it.
bool is_free(const Folder& folder) {
  const pid_t child = ::fork();
  if (child == 0) {
    try {
      const FolderLock lock(folder.path, "a child", "test");
      ::_exit(0);
    } catch (const IoError&) {
      ::_exit(1);
    }
  }
  int status = -1;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

TEST(FolderLock, IsHeldByOneJobUntilItsEnd) {
  const Folder folder;
  {
    const FolderLock lock(folder.path, "a run", "test");
    EXPECT_TRUE(lock);
    EXPECT_FALSE(is_free(folder));
  }
  EXPECT_TRUE(std::filesystem::is_empty(folder.path));
  EXPECT_TRUE(is_free(folder));
}

TEST(FolderLock, SaysWhoHasIt) {
  const Folder folder;
  const FolderLock lock(folder.path, "a run", "test");
  try {
    const FolderLock second(folder.path, "another", "train");
    ADD_FAILURE() << "both have it";
  } catch (const IoError& error) {
    const std::string message = error.what();
    for (const std::string& part :
         {std::string("[train]"), std::string("another job uses"), std::string("a run, process "),
          std::to_string(::getpid()), std::string(" UTC")}) {
      EXPECT_NE(message.find(part), std::string::npos) << message;
    }
  }
}

/// Its end, not that of its children.
TEST(FolderLock, WaitsForAHolderThatHasNotSaidYetWhoItIs) {
  const Folder folder;
  const auto path = folder.path / ".lock";
  const int held = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, S_IRUSR | S_IWUSR);
  ASSERT_EQ(::flock(held, LOCK_EX | LOCK_NB), 0);
  std::thread holder([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    const std::string words = "a slow run\nowner 1\n";
    EXPECT_EQ(::pwrite(held, words.data(), words.size(), 0), static_cast<ssize_t>(words.size()));
  });
  const std::string told =
      message_of<IoError>([&] { const FolderLock lock(folder.path, "another", "test"); });
  EXPECT_NE(told.find("a slow run"), std::string::npos) << told;
  holder.join();
  ::close(held);
}

TEST(FolderLock, GoesWithAProcessThatIsKilled) {
  const Folder folder;
  std::array<int, 2> pipe = {};
  ASSERT_EQ(::pipe(pipe.data()), 0);
  const pid_t holder = ::fork();
  if (holder == 0) {
    const FolderLock lock(folder.path, "a child", "test");
    const pid_t own = ::fork();
    if (own == 0) {
      ::sleep(20);
      ::_exit(0);
    }
    if (::write(pipe[1], &own, sizeof(own)) < 0) ::_exit(1);
    ::pause();
  }
  pid_t grandchild = 0;
  ASSERT_EQ(::read(pipe[0], &grandchild, sizeof(grandchild)),
            static_cast<ssize_t>(sizeof(grandchild)));
  EXPECT_FALSE(is_free(folder));
  ::kill(holder, SIGKILL);
  ::waitpid(holder, nullptr, 0);
  bool went = false;
  for (int i = 0; i < 1000 && !went; ++i) {  // the grandchild may not have run yet
    went = is_free(folder);
    ::usleep(1000);
  }
  EXPECT_TRUE(went);
  ::kill(grandchild, SIGKILL);
  ::close(pipe[0]);
  ::close(pipe[1]);
}

/// As on a file system where both can have it.
TEST(FolderLock, FindsOutWhoHasTakenTheFolderOver) {
  const Folder folder;
  {
    const FolderLock lock(folder.path, "a run", "test");
    lock.check();
    std::ofstream(folder.path / ".lock") << "another run, process 1 on far\nowner 0123\n";
    try {
      lock.check();
      ADD_FAILURE() << "it still has it";
    } catch (const IoError& error) {
      const std::string message = error.what();
      EXPECT_NE(message.find("taken over " + folder.path.string()), std::string::npos) << message;
      EXPECT_NE(message.find("got another run, process 1 on far;"), std::string::npos) << message;
    }
  }
  EXPECT_TRUE(std::filesystem::exists(folder.path / ".lock"));  // it is the other's
}

TEST(FolderLock, IsTakenOverByAProcessOfTheSameJob) {
  const Folder folder;
  {
    const FolderLock frozen(folder.path, "a worker", "test", "job1");
    const FolderLock next(folder.path, "another worker", "test", "job1");
    EXPECT_NO_THROW(frozen.check());  // it is of the same job, which ends it in other ways
    EXPECT_NO_THROW(next.check());
    for (const std::string job : {"job2", "job", ""}) {
      const std::string told = message_of<IoError>(
          [&] { const FolderLock other(folder.path, "a stranger", "test", job); });
      EXPECT_NE(told.find("another worker"), std::string::npos) << told;
    }
    EXPECT_FALSE(is_free(folder));
  }
  EXPECT_TRUE(is_free(folder));
}

TEST(FolderLock, IsTakenFromAWorkerWhoseJobHasNoWordByNobody) {
  const Folder folder;
  const FolderLock lock(folder.path, "a run", "test");
  EXPECT_THROW(FolderLock(folder.path, "a worker", "test", "job1"), IoError);
}

TEST(FolderLock, IsKeptWhereItsTextIsLost) {
  const Folder folder;
  const FolderLock lock(folder.path, "a run", "test");
  std::filesystem::remove(folder.path / ".lock");
  lock.check();
}

TEST(FolderLock, NeedsAFolderToWriteIn) {
  EXPECT_THROW(FolderLock("/proc/self", "a run", "test"), IoError);
}

}  // namespace
}  // namespace gossamer
