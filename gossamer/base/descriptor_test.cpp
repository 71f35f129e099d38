#include "gossamer/base/descriptor.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>

namespace gossamer {
namespace {

bool is_open(int number) { return ::fcntl(number, F_GETFD) >= 0 || errno != EBADF; }

/// What a child finds, as its exit status.
template <class Look>
int in_child(const Look& look) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(look());
  int status = -1;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST(Descriptor, IsClosedWithItsOwner) {
  int number = -1;
  {
    const Descriptor owner(::open("/dev/null", O_RDONLY | O_CLOEXEC));
    number = owner.get();
    EXPECT_TRUE(is_open(number));
  }
  EXPECT_FALSE(is_open(number));
}

TEST(Descriptor, AForkHoldsNoneAndClosesNoneOfItsOwn) {
  Descriptor owner(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  const int found = in_child([&] {
    if (is_open(owner.get())) return 1;
    const int own = ::open("/dev/null", O_RDONLY | O_CLOEXEC);  // takes the number that is free
    if (own != owner.get()) return 2;
    owner.reset();
    return is_open(own) ? 0 : 3;
  });
  EXPECT_EQ(found, 0);
  EXPECT_TRUE(is_open(owner.get()));
}

/// A peer hears of the end of a process, whatever its children are doing.
TEST(Descriptor, AForkDoesNotKeepAConnectionOpen) {
  std::array<int, 2> ends = {};
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()), 0);
  const Descriptor here(ends[0]);
  Descriptor there(ends[1]);
  const pid_t child = ::fork();
  if (child == 0) {
    ::pause();
    ::_exit(0);
  }
  std::array<char, 1> byte = {};
  // Until the child has begun to run, it holds the other end.
  there.reset();
  EXPECT_EQ(::recv(here.get(), byte.data(), byte.size(), 0), 0);
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
}

}  // namespace
}  // namespace gossamer
