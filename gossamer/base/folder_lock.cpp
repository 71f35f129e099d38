#include "gossamer/base/folder_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <random>
#include <thread>
#include <utility>

#include "gossamer/base/errors.h"

namespace gossamer {
namespace {

constexpr const char* kName = ".lock";
constexpr const char* kOwner = "\nowner ";
constexpr std::size_t kMostSaid = 512;
constexpr std::chrono::milliseconds kPatience{500};
constexpr std::chrono::milliseconds kNap{2};

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

std::string random_word() {
  std::random_device random;
  std::string word;
  for (int i = 0; i < 4; ++i) {
    std::array<char, 9> digits = {};
    std::snprintf(digits.data(), digits.size(), "%08x", random());
    word += digits.data();
  }
  return word;
}

/// What the holder says of itself, and its word.
struct Said {
  std::string who = "it does not say which";
  std::string owner;
};

Said said_in(int file) {
  std::array<char, kMostSaid> text = {};
  const ssize_t got = ::pread(file, text.data(), text.size(), 0);
  const std::string words(text.data(), got > 0 ? static_cast<std::size_t>(got) : 0);
  const std::size_t end = words.find('\n');
  Said said;
  if (end == 0 || words.empty()) return said;
  said.who = printable(words.substr(0, end));
  const std::size_t owner = words.find(kOwner);
  if (owner != std::string::npos) {
    const std::size_t begin = owner + std::string_view(kOwner).size();
    said.owner = words.substr(begin, words.find('\n', begin) - begin);
  }
  return said;
}

/// What a holder says that has just taken the lock, and may be about to say it.
Said holder_of(int file) {
  const auto limit = std::chrono::steady_clock::now() + kPatience;
  Said said = said_in(file);
  while (said.owner.empty() && std::chrono::steady_clock::now() < limit) {
    std::this_thread::sleep_for(kNap);
    said = said_in(file);
  }
  return said;
}

bool is_of(const std::string& job, const Said& said) {
  return !job.empty() && said.owner.starts_with(job);
}

void say(int file, const std::string& who, const std::string& owner) {
  const std::string words = who + ", process " + std::to_string(::getpid()) + " on " + host_name() +
                            " since " + now() + kOwner + owner + "\n";
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
                       std::string_view place, const std::string& job)
    : path_(folder / kName),
      place_(place),
      job_(job.empty() ? "" : job + "-"),
      owner_(job_ + random_word()),
      process_(::getpid()) {
  while (!file_) {
    Descriptor file(::open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK,
                           S_IRUSR | S_IWUSR | S_IRGRP | S_IROTH));
    if (!file) {
      fail_io({.place = place_,
               .what = "cannot make " + path_.string(),
               .got = std::strerror(errno),
               .remedy = "give a folder in which this user may write"});
    }
    const bool is_held = ::flock(file.get(), LOCK_EX | LOCK_NB) == 0;
    if (!is_held && errno == EWOULDBLOCK) {
      const Said holder = holder_of(file.get());
      if (!is_of(job_, holder)) {
        fail_io({.place = place_,
                 .what = "another job uses " + folder.string(),
                 .got = holder.who,
                 .remedy = "wait for its end, or give another folder"});
      }
      if (is_named(file.get(), path_)) ::unlink(path_.c_str());
      continue;
    }
    if (!is_held || is_named(file.get(), path_)) file_ = std::move(file);
  }
  say(file_.get(), who, owner_);
}

void FolderLock::check() const {
  if (!file_) return;
  const Descriptor file(::open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  if (!file) return;  // nobody says that they have it
  const Said said = said_in(file.get());
  if (said.owner.empty() || said.owner == owner_ || is_of(job_, said)) return;
  fail_io({.place = place_,
           .what = "another job has taken over " + path_.parent_path().string(),
           .got = said.who,
           .remedy = "end one of them, or give each a folder of its own"});
}

FolderLock::~FolderLock() {
  if (!file_ || process_ != ::getpid()) return;
  const Descriptor file(::open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  const std::string owner = file ? said_in(file.get()).owner : "";
  if (owner.empty() || owner == owner_) ::unlink(path_.c_str());  // while nobody else can have it
}

FolderLock& FolderLock::operator=(FolderLock&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(place_, other.place_);
  std::swap(job_, other.job_);
  std::swap(owner_, other.owner_);
  std::swap(process_, other.process_);
  std::swap(file_, other.file_);
  return *this;
}

}  // namespace gossamer
