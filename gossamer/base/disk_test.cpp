#include "gossamer/base/disk.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <cerrno>
#include <csignal>
#include <utility>

#include "gossamer/base/outside_error.h"
#include "gossamer/base/test_folder.h"

namespace gossamer {
namespace {

std::span<const std::byte> bytes_of(const std::string& text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

/// Stands for a full disk: files of this process cannot grow beyond `bytes` while it lives.
class FileSizeLimit {
 public:
  explicit FileSizeLimit(rlim_t bytes) : handler_(std::signal(SIGXFSZ, SIG_IGN)) {
    getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit limit{bytes, before_.rlim_max};
    setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~FileSizeLimit() {
    setrlimit(RLIMIT_FSIZE, &before_);
    std::signal(SIGXFSZ, handler_);
  }

 private:
  void (*handler_)(int);
  rlimit before_{};
};

std::ptrdiff_t entries_in(const std::filesystem::path& folder) {
  return std::distance(std::filesystem::directory_iterator(folder),
                       std::filesystem::directory_iterator());
}

TEST(Crc32, IsTheCheckValueOfTheCatalogue) {
  EXPECT_EQ(crc32_of(bytes_of("123456789")), 0xCBF43926u);
  EXPECT_EQ(crc32_of({}), 0u);
}

TEST(Crc32, GoesOnWhereItStopped) {
  EXPECT_EQ(crc32_of(bytes_of("6789"), crc32_of({}, crc32_of(bytes_of("12345")))), 0xCBF43926u);
}

TEST(NewFile, AppearsOnlyWhenPublished) {
  const ScratchFolder folder;
  NewFile file(folder / "a");
  file.write("12345");
  file.write("6789");
  EXPECT_FALSE(std::filesystem::exists(folder / "a"));
  EXPECT_EQ(file.publish(), (FileDigest{9, 0xCBF43926u}));
  EXPECT_EQ(get_file(folder / "a"), "123456789");
  EXPECT_EQ(entries_in(folder.path()), 1);
}

TEST(NewFile, LeavesTheOldContentWhenItIsNotPublished) {
  const ScratchFolder folder;
  put_file(folder / "a", "old");
  { NewFile(folder / "a").write("new"); }
  EXPECT_EQ(get_file(folder / "a"), "old");
  EXPECT_EQ(entries_in(folder.path()), 1);
}

TEST(NewFile, KeepsTheOldContentAndCleansUpWhenTheDiskTakesNoMore) {
  const ScratchFolder folder;
  put_file(folder / "a", "old");
  const std::string large(3 << 20, 'x');
  const FileSizeLimit limit(1 << 20);
  const std::string message = message_of<IoError>([&] { NewFile(folder / "a").write(large); });
  EXPECT_TRUE(contains(message, (folder / "a").native())) << message;
  EXPECT_TRUE(contains(message, "File too large")) << message;
  EXPECT_EQ(get_file(folder / "a"), "old");
  EXPECT_EQ(entries_in(folder.path()), 1);
}

TEST(NewFile, NamesThePathAndTheReasonWhenTheFolderIsNone) {
  const ScratchFolder folder;
  put_file(folder / "file", "");
  const std::string message = message_of<IoError>([&] { NewFile(folder / "file" / "a"); });
  EXPECT_TRUE(contains(message, (folder / "file" / "a").native())) << message;
  EXPECT_TRUE(contains(message, "Not a directory")) << message;
}

TEST(ReadFile, GivesTheBytesOnAnAlignedAddress) {
  const ScratchFolder folder;
  for (std::size_t size : {0u, 1u, 63u, 64u, 65u, 4097u}) {
    put_file(folder / "a", std::string(size, 'x'));
    const FileBytes bytes = read_file(folder / "a");
    EXPECT_EQ(bytes.size, size);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(bytes.memory.get()) % 64, 0u);
    EXPECT_EQ(digest_file(folder / "a"), (FileDigest{size, crc32_of(bytes.span())}));
  }
}

TEST(ReadFile, RefusesWhatIsMissingTooLongOrNoFile) {
  const ScratchFolder folder;
  put_file(folder / "a", "12345");
  EXPECT_EQ(read_file(folder / "a", 5).size, 5u);
  EXPECT_TRUE(contains(message_of<IoError>([&] { read_file(folder / "a", 4); }), "longer"));
  EXPECT_TRUE(contains(message_of<IoError>([&] { read_file(folder / "b"); }), "No such file"));
  EXPECT_TRUE(contains(message_of<IoError>([&] { read_file(folder.path()); }), "not a regular"));
}

TEST(ReadFile, SaysWhatToDoAboutAPathThatLeadsNowhere) {
  const ScratchFolder folder;
  std::filesystem::create_symlink("there", folder / "here");
  std::filesystem::create_symlink("here", folder / "there");
  const auto message_at = [](const std::filesystem::path& path) {
    return message_of<IoError>([&] { read_file(path); });
  };
  EXPECT_TRUE(contains(message_at(folder / "here"), "mend the links in the path"));
  EXPECT_TRUE(contains(message_at(folder / std::string(300, 'x')), "choose a shorter name"));
}

TEST(ReadFile, NamesAFileThatIsShorterThanTheSystemSaid) {
  // A file of one page, as the system says, that holds a line.
  const std::filesystem::path file = "/sys/kernel/mm/transparent_hugepage/enabled";
  if (!std::filesystem::exists(file)) GTEST_SKIP() << "no " << file;
  const std::string message = message_of<IoError>([&] { read_file(file); });
  EXPECT_TRUE(contains(message, "was cut short while it was read")) << message;
}

TEST(DigestFile, NamesAFileThatCannotBeRead) {
  // Nothing is mapped where it begins.
  const std::string message = message_of<OutsideError>([] { digest_file("/proc/self/mem"); });
  EXPECT_TRUE(contains(message, "cannot read the file, got 'Input/output error'")) << message;
  EXPECT_TRUE(contains(message, "use a copy on another disk")) << message;
}

TEST(FailSystem, TellsWhatIsMissingFromWhatTheMachineLacks) {
  const auto remedy = [](int error) {
    return message_of<IoError>([&] { fail_system("a", "cannot do it", error); });
  };
  EXPECT_THROW(fail_system("a", "cannot do it", EROFS), OutsideError);
  EXPECT_TRUE(contains(remedy(EROFS), "a disk mounted for writing"));
  EXPECT_TRUE(contains(remedy(ENFILE), "open files of the system (sysctl fs.file-max)"));
  EXPECT_TRUE(contains(remedy(EMFILE), "open files of a process (ulimit -n)"));
  EXPECT_TRUE(contains(remedy(EPROTO), "got 'Protocol error'; check the path and the disk"));
}

TEST(ReadFile, DoesNotWaitAtAPipe) {
  const ScratchFolder folder;
  ASSERT_EQ(mkfifo((folder / "pipe").c_str(), 0600), 0);
  EXPECT_TRUE(contains(message_of<IoError>([&] { read_file(folder / "pipe"); }), "not a regular"));
}

}  // namespace
}  // namespace gossamer
