/* Preloaded by tests of saves and of lost workers: some calls on files of a name fail with EIO. FAULT
   is "CALL PART FIRST COUNT", e.g. "fsync worker-00001 2 1": the second one fails. CALL may be "any".
   FAULT_CAME has the call that failed. With FAULT_KILLS the process is killed instead, before the
   call; with FAULT_STOPS it stands still there until it is continued. NO_LOCKS and NO_EXCHANGE: as on
   some network file systems. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static atomic_int seen;

static int fails(const char* call, const char* path) {
  const char* fault = getenv("FAULT");
  char wanted[32], part[128];
  int first = 0, count = 0;
  if (fault == NULL || sscanf(fault, "%31s %127s %d %d", wanted, part, &first, &count) != 4) return 0;
  const int is_wanted = strcmp(call, wanted) == 0 || strcmp(wanted, "any") == 0;
  if (!is_wanted || strstr(path, part) == NULL) return 0;
  const int number = atomic_fetch_add(&seen, 1) + 1;
  if (number < first || number >= first + count) return 0;
  if (getenv("FAULT_KILLS") != NULL) kill(getpid(), SIGKILL);
  if (getenv("FAULT_STOPS") != NULL) return raise(SIGSTOP);
  setenv("FAULT_CAME", call, 1);
  errno = EIO;
  return 1;
}

static int fails_on(const char* call, int descriptor) {
  char link[64], path[4096];
  snprintf(link, sizeof link, "/proc/self/fd/%d", descriptor);
  const ssize_t length = readlink(link, path, sizeof path - 1);
  if (length <= 0) return 0;
  path[length] = '\0';
  return fails(call, path);
}

int fsync(int descriptor) {
  int (*next)(int) = (int (*)(int))dlsym(RTLD_NEXT, "fsync");
  return fails_on("fsync", descriptor) ? -1 : next(descriptor);
}

ssize_t write(int descriptor, const void* data, size_t size) {
  ssize_t (*next)(int, const void*, size_t) =
      (ssize_t(*)(int, const void*, size_t))dlsym(RTLD_NEXT, "write");
  return fails_on("write", descriptor) ? -1 : next(descriptor, data, size);
}

int flock(int descriptor, int operation) {
  int (*next)(int, int) = (int (*)(int, int))dlsym(RTLD_NEXT, "flock");
  if (getenv("NO_LOCKS") == NULL) return next(descriptor, operation);
  errno = ENOLCK;
  return -1;
}

int rename(const char* from, const char* to) {
  int (*next)(const char*, const char*) = (int (*)(const char*, const char*))dlsym(RTLD_NEXT, "rename");
  return fails("rename", from) || fails("rename-to", to) ? -1 : next(from, to);
}

int renameat2(int from_folder, const char* from, int to_folder, const char* to, unsigned flags) {
  int (*next)(int, const char*, int, const char*, unsigned) =
      (int (*)(int, const char*, int, const char*, unsigned))dlsym(RTLD_NEXT, "renameat2");
  if (getenv("NO_EXCHANGE") != NULL && flags != 0) {
    errno = EINVAL;
    return -1;
  }
  return fails("renameat2", from) ? -1 : next(from_folder, from, to_folder, to, flags);
}

int mkdir(const char* path, mode_t mode) {
  int (*next)(const char*, mode_t) = (int (*)(const char*, mode_t))dlsym(RTLD_NEXT, "mkdir");
  return fails("mkdir", path) ? -1 : next(path, mode);
}
