#include "gossamer/base/folder_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <utility>

#include "gossamer/base/errors.h"

namespace gossamer {
namespace {

constexpr const char* kName = ".lock";
constexpr std::size_t kMostSaid = 512;

std::string host_name() {
  std::array<char, 256> name = {};
  ::gethostname(name.data(), name.size() - 1);
  return name.data();
}

std::string now() {
  std::array<char, 32> text = {};
  const std::time_t time = std::time(nullptr);
  std::tm parts = {};
  ::gmtime_r(&time, &parts);
  std::strftime(text.data(), text.size(), "%Y-%m-%d %H:%M:%S UTC", &parts);
  return text.data();
}

/// What the holder says of itself.
std::string said_in(int file) {
  std::array<char, kMostSaid> text = {};
  const ssize_t got = ::pread(file, text.data(), text.size(), 0);
  std::string words(text.data(), got > 0 ? static_cast<std::size_t>(got) : 0);
  words.erase(words.find_last_not_of('\n') + 1);
  return words.empty() ? "it does not say which" : words;
}

void say(int file, const std::string& who) {
  const std::string words = who + ", process " + std::to_string(::getpid()) + " on " + host_name() +
                            " since " + now() + "\n";
  // What is said is for people: a disk that is full takes the lock nevertheless.
  if (::ftruncate(file, 0) == 0) {
    [[maybe_unused]] const ssize_t wrote = ::pwrite(file, words.data(), words.size(), 0);
  }
}

/// Whether the file still has its name: a holder that ends takes the name away.
bool is_named(int file, const std::filesystem::path& path) {
  struct stat here {};
  struct stat there {};
  return ::fstat(file, &here) == 0 && ::stat(path.c_str(), &there) == 0 &&
         here.st_ino == there.st_ino && here.st_dev == there.st_dev;
}

}  // namespace

FolderLock::FolderLock(const std::filesystem::path& folder, const std::string& who,
                       std::string_view place)
    : path_(folder / kName), process_(::getpid()) {
  while (!file_) {
    Descriptor file(::open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK,
                           S_IRUSR | S_IWUSR | S_IRGRP | S_IROTH));
    if (!file) {
      fail_io({.place = std::string(place),
               .what = "cannot make " + path_.string(),
               .got = std::strerror(errno),
               .remedy = "give a folder in which this user may write"});
    }
    if (::flock(file.get(), LOCK_EX | LOCK_NB) != 0) {
      if (errno != EWOULDBLOCK) return;  // the file system has none
      fail_io({.place = std::string(place),
               .what = "another job uses " + folder.string(),
               .got = said_in(file.get()),
               .remedy = "wait for its end, or give another folder"});
    }
    if (is_named(file.get(), path_)) file_ = std::move(file);
  }
  say(file_.get(), who);
}

FolderLock::~FolderLock() {
  if (file_ && process_ == ::getpid()) ::unlink(path_.c_str());  // while nobody else can have it
}

FolderLock& FolderLock::operator=(FolderLock&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(process_, other.process_);
  std::swap(file_, other.file_);
  return *this;
}

}  // namespace gossamer
