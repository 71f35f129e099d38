// What programs of this machine ask of a C library that is newer than 2.28, in terms of that one.
// tools/old_system/make.py compiles it; all of it stays inside the program or module that is linked
// with it.
#include <dlfcn.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <ctime>

struct stat;

namespace {

constexpr int kHere = -100;         // AT_FDCWD
constexpr int kEmptyPath = 0x1000;  // AT_EMPTY_PATH
constexpr int kLinkItself = 0x100;  // AT_SYMLINK_NOFOLLOW
constexpr long kSecond_ns = 1000000000;

// The kernel's structure is that of the C library on 64 bits.
int stat_of(int folder, const char* path, struct stat* out, int flags) {
  return static_cast<int>(syscall(SYS_newfstatat, folder, path, out, flags));
}

using ClockWait = int (*)(pthread_cond_t*, pthread_mutex_t*, clockid_t, const timespec*);

timespec on_the_wall(clockid_t clock, const timespec& until) {
  timespec now{};
  timespec wall{};
  clock_gettime(clock, &now);
  clock_gettime(CLOCK_REALTIME, &wall);
  const long ns = wall.tv_nsec + until.tv_nsec - now.tv_nsec;
  const long carry = ns < 0 ? -1 : ns / kSecond_ns;
  return {wall.tv_sec + until.tv_sec - now.tv_sec + carry, ns - carry * kSecond_ns};
}

bool is_past(clockid_t clock, const timespec& until) {
  timespec now{};
  clock_gettime(clock, &now);
  return now.tv_sec > until.tv_sec || (now.tv_sec == until.tv_sec && now.tv_nsec >= until.tv_nsec);
}

}  // namespace

extern "C" {

int stat(const char* path, struct stat* out) { return stat_of(kHere, path, out, 0); }
int lstat(const char* path, struct stat* out) { return stat_of(kHere, path, out, kLinkItself); }
int fstat(int file, struct stat* out) { return stat_of(file, "", out, kEmptyPath); }

// Counts of shared pointers are atomic in any case.
char __libc_single_threaded = 0;

// The system's where it has one, which a set clock does not move; else, as libstdc++ once did, the
// wait on the wall's clock. A wake too early is no time-out, and the caller waits again.
int pthread_cond_clockwait(pthread_cond_t* condition, pthread_mutex_t* mutex, clockid_t clock,
                           const timespec* until) {
  static const auto system =
      reinterpret_cast<ClockWait>(dlsym(RTLD_DEFAULT, "pthread_cond_clockwait"));
  if (system != nullptr) {
    return system(condition, mutex, clock, until);
  }
  const timespec wall = on_the_wall(clock, *until);
  const int result = pthread_cond_timedwait(condition, mutex, &wall);
  return result == ETIMEDOUT && !is_past(clock, *until) ? 0 : result;
}

}  // extern "C"
