#include "gossamer/base/disk.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <random>
#include <system_error>
#include <utility>
#include <vector>

#include "gossamer/base/errors.h"
#include "gossamer/base/outside_error.h"

namespace gossamer {
namespace {

constexpr std::size_t kPieceBytes = std::size_t{1} << 20;

std::string remedy_for(int error) {
  switch (error) {
    case ENOSPC:
    case EDQUOT:
      return "free space or choose a folder on another disk";
    case EFBIG:
      return "raise the limit on file sizes (ulimit -f) or choose another disk";
    case EACCES:
    case EPERM:
      return "check who may write and read there";
    case EROFS:
      return "choose a folder on a disk mounted for writing";
    case ENOTDIR:
      return "a part of the path is a file; choose another folder";
    case EMFILE:
      return "raise the limit on open files of a process (ulimit -n)";
    case ENFILE:
      return "raise the limit on open files of the system (sysctl fs.file-max)";
    case ENAMETOOLONG:
      return "choose a shorter name";
    case ELOOP:
      return "mend the links in the path, which lead back to themselves";
    case ENOENT:
      return "check the path";
    case EIO:
      return "the disk or its connection is faulty; use a copy on another disk";
    default:
      return "check the path and the disk";
  }
}

/// An open file for reading that closes itself.
class InputFile {
 public:
  explicit InputFile(const std::filesystem::path& path) : path_(path) {
    // O_NONBLOCK: a pipe without a writer must become an error below, not a wait.
    descriptor_ = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (descriptor_ < 0) fail_system(path, "cannot open the file", errno);
    struct stat status {};
    const int failed = ::fstat(descriptor_, &status) == 0 ? 0 : errno;
    if (failed == 0 && S_ISREG(status.st_mode)) {
      size_ = static_cast<std::uint64_t>(status.st_size);
      return;
    }
    ::close(descriptor_);
    if (failed != 0) fail_system(path, "cannot ask for the size of the file", failed);
    fail_io({.place = path.native(), .what = "is not a regular file", .remedy = "check the path"});
  }
  ~InputFile() { ::close(descriptor_); }
  InputFile(const InputFile&) = delete;
  InputFile& operator=(const InputFile&) = delete;

  std::uint64_t size() const { return size_; }

  /// Fills `out` as far as the file goes; returns the bytes read.
  std::size_t read(std::span<std::byte> out) {
    std::size_t done = 0;
    while (done < out.size()) {
      const ssize_t got = ::read(descriptor_, out.data() + done, out.size() - done);
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) fail_system(path_, "cannot read the file", errno);
      if (got == 0) break;
      done += static_cast<std::size_t>(got);
    }
    return done;
  }

 private:
  const std::filesystem::path& path_;
  int descriptor_ = -1;
  std::uint64_t size_ = 0;
};

std::filesystem::path folder_of(const std::filesystem::path& path) {
  return path.has_parent_path() ? path.parent_path() : std::filesystem::path(".");
}

}  // namespace

std::uint32_t crc32_of(std::span<const std::byte> data, std::uint32_t so_far) {
  if (data.empty()) return so_far;  // zlib takes a null pointer for "start anew"
  const auto* first = reinterpret_cast<const Bytef*>(data.data());
  return static_cast<std::uint32_t>(::crc32_z(so_far, first, data.size()));
}

std::string unique_suffix() {
  std::random_device device;
  char text[17];
  std::snprintf(text, sizeof text, "%08x%08x", device(), device());
  return text;
}

NewFile::NewFile(std::filesystem::path path) : path_(std::move(path)) {
  aside_ = path_;
  aside_ += ".tmp-" + unique_suffix();
  descriptor_ = ::open(aside_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (descriptor_ < 0) fail_system(path_, "cannot create the file", errno);
}

NewFile::~NewFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
  if (!aside_.empty()) ::unlink(aside_.c_str());
}

void NewFile::write(std::span<const std::byte> data) {
  while (!data.empty()) {
    // Checksum and write piece by piece, so that the second touch finds the bytes in the cache.
    const auto piece = data.first(std::min(data.size(), kPieceBytes));
    const ssize_t wrote = ::write(descriptor_, piece.data(), piece.size());
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote < 0) fail_system(path_, "cannot write the file", errno);
    const auto count = static_cast<std::size_t>(wrote);
    digest_.crc32 = crc32_of(piece.first(count), digest_.crc32);
    digest_.bytes += count;
    data = data.subspan(count);
  }
}

void NewFile::write(std::string_view text) {
  write(std::as_bytes(std::span(text.data(), text.size())));
}

FileDigest NewFile::publish() {
  if (::fsync(descriptor_) != 0) fail_system(path_, "cannot bring the file to the disk", errno);
  const int closed = ::close(std::exchange(descriptor_, -1));
  // Network file systems report a full disk only here.
  if (closed != 0 && errno != EINTR) fail_system(path_, "cannot write the file", errno);
  if (::rename(aside_.c_str(), path_.c_str()) != 0) {
    fail_system(path_, "cannot give the file its name", errno);
  }
  aside_.clear();
  sync_folder(folder_of(path_));
  return digest_;
}

void write_file(const std::filesystem::path& path, std::string_view text) {
  NewFile file(path);
  file.write(text);
  file.publish();
}

FileBytes read_file(const std::filesystem::path& path, std::uint64_t limit_bytes) {
  InputFile file(path);
  if (file.size() > limit_bytes) {
    fail_io({.place = path.native(),
             .what = "the file is longer than the " + std::to_string(limit_bytes) +
                     " bytes that such a file can have",
             .got = std::to_string(file.size()),
             .remedy = "check the path or use another copy"});
  }
  const std::size_t size = file.size();
  FileBytes bytes;
  bytes.size = size;
  bytes.memory.reset(
      static_cast<std::byte*>(::operator new[](size, std::align_val_t{kCacheLine}, std::nothrow)));
  if (bytes.memory == nullptr) {
    fail_io({.place = path.native(),
             .what = "the file does not fit into memory",
             .got = std::to_string(size) + " bytes",
             .remedy = "read it on a machine with more memory"});
  }
  const std::size_t got = file.read({bytes.memory.get(), size});
  if (got != size) {
    fail_io({.place = path.native(),
             .what = "the file was cut short while it was read",
             .got = std::to_string(got) + " of " + std::to_string(size) + " bytes",
             .remedy = "make sure that nothing writes to it"});
  }
  return bytes;
}

FileDigest digest_file(const std::filesystem::path& path) {
  InputFile file(path);
  std::vector<std::byte> piece(kPieceBytes);
  FileDigest digest;
  for (;;) {
    const std::size_t got = file.read(piece);
    digest.crc32 = crc32_of({piece.data(), got}, digest.crc32);
    digest.bytes += got;
    if (got < piece.size()) return digest;
  }
}

void sync_folder(const std::filesystem::path& folder) {
  const int descriptor = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0) fail_system(folder, "cannot open the folder", errno);
  const int failed = ::fsync(descriptor) == 0 ? 0 : errno;
  ::close(descriptor);
  // EINVAL: this file system has no such call for folders and needs none.
  if (failed != 0 && failed != EINVAL) {
    fail_system(folder, "cannot bring the folder to the disk", failed);
  }
}

bool is_there(const std::filesystem::path& path) {
  std::error_code error;
  const bool is_found = std::filesystem::exists(path, error);
  if (error) fail_system(path, "cannot look for", error.value());
  return is_found;
}

void fail_system(const std::filesystem::path& path, std::string_view what, int error) {
  const bool is_outside = error == ENOSPC || error == EDQUOT || error == EIO || error == EROFS;
  const Complaint complaint{.place = path.native(),
                            .what = what,
                            .got = "'" + std::system_category().message(error) + "'",
                            .remedy = remedy_for(error)};
  if (is_outside) fail_outside(complaint);
  fail_io(complaint);
}

}  // namespace gossamer
