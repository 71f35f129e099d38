/* Preloaded by test_train_disk.py: some calls on files of a name fail with EIO.
   FAULT is "CALL PART FIRST COUNT", e.g. "fsync worker-00001 2 1": the second one fails. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static atomic_int seen;

static int fails(const char* call, const char* path) {
  const char* fault = getenv("FAULT");
  char wanted[32], part[128];
  int first = 0, count = 0;
  if (fault == NULL || sscanf(fault, "%31s %127s %d %d", wanted, part, &first, &count) != 4) return 0;
  if (strcmp(call, wanted) != 0 || strstr(path, part) == NULL) return 0;
  const int number = atomic_fetch_add(&seen, 1) + 1;
  if (number < first || number >= first + count) return 0;
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
