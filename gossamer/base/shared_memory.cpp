#include "gossamer/base/shared_memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <functional>
#include <string>

#include "gossamer/base/errors.h"

namespace gossamer {
namespace {

constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;

[[noreturn]] void fail(const char* what, std::size_t bytes) {
  const std::string got = std::to_string(bytes) + " bytes: " + std::strerror(errno);
  fail_io({.place = "shared memory",
           .what = what,
           .got = got,
           .remedy = "give the job more memory, and a container more of /dev/shm"});
}

/// Where files of memory may be run, systems ask that this one is not; older ones do not know the
/// word.
int make_file() {
  constexpr unsigned kFlags = MFD_CLOEXEC | MFD_ALLOW_SEALING;
  constexpr unsigned kNoExecSeal = 0x0008U;  // MFD_NOEXEC_SEAL of Linux 6.3
  const int file = ::memfd_create("gossamer", kFlags | kNoExecSeal);
  return file >= 0 || errno != EINVAL ? file : ::memfd_create("gossamer", kFlags);
}

/// Whoever gets the descriptor can neither resize nor write it; systems before Linux 5.1 know only
/// the former.
bool seal(int file) {
  constexpr int kNoFurtherWriters = 0x0010;  // F_SEAL_FUTURE_WRITE
  return ::fcntl(file, F_ADD_SEALS, kSeals | kNoFurtherWriters) == 0 ||
         (errno == EINVAL && ::fcntl(file, F_ADD_SEALS, kSeals) == 0);
}

}  // namespace

SharedMemory::SharedMemory(std::size_t bytes) : file_(make_file()), size_(bytes) {
  if (!file_ || ::ftruncate(file_.get(), static_cast<off_t>(bytes)) != 0) {
    fail("the system gives no shared memory", bytes);
  }
  if (bytes > 0) {
    void* mapped = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file_.get(), 0);
    if (mapped == MAP_FAILED) fail("shared memory cannot be mapped", bytes);
    data_ = static_cast<std::byte*>(mapped);
  }
  if (!seal(file_.get())) fail("the system gives no shared memory", bytes);
}

SharedMemory::~SharedMemory() {
  if (data_ != nullptr) ::munmap(data_, size_);
}

bool SharedMemory::contains(const void* begin, std::size_t bytes) const {
  const auto* first = static_cast<const std::byte*>(begin);
  const std::less_equal<> not_after;
  return data_ != nullptr && not_after(data_, first) && not_after(first + bytes, data_ + size_);
}

SharedMapping::SharedMapping(Descriptor file, std::size_t bytes) : size_(bytes) {
  struct stat found {};
  const bool fits = file && ::fstat(file.get(), &found) == 0 &&
                    static_cast<std::size_t>(found.st_size) >= bytes && bytes > 0;
  const int seals = file ? ::fcntl(file.get(), F_GET_SEALS) : -1;
  if (!fits || seals < 0 || (seals & F_SEAL_SHRINK) == 0) {
    errno = EINVAL;
    fail("a peer gave something that is not shared memory of that size", bytes);
  }
  void* mapped = ::mmap(nullptr, bytes, PROT_READ, MAP_SHARED, file.get(), 0);
  if (mapped == MAP_FAILED) fail("a peer's shared memory cannot be mapped", bytes);
  data_ = static_cast<const std::byte*>(mapped);
}

SharedMapping::~SharedMapping() {
  if (data_ != nullptr) ::munmap(const_cast<std::byte*>(data_), size_);
}

}  // namespace gossamer
