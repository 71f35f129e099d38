#include "gossamer/base/address.h"

#include <gtest/gtest.h>
#include <netinet/in.h>

#include "gossamer/base/shared_memory.h"

namespace gossamer {
namespace {

TEST(Address, LoopbackIsKnownInAllItsForms) {
  for (const char* inside : {"127.0.0.1", "127.0.1.1", "::1", "::ffff:127.0.0.1"}) {
    EXPECT_TRUE(is_loopback(inside)) << inside;
  }
  for (const char* outside : {"10.0.0.1", "12.7.0.1", "fd00::1", "::ffff:10.0.0.1", ""}) {
    EXPECT_FALSE(is_loopback(outside)) << outside;
  }
}

TEST(Address, OfASocketIsInNumbers) {
  const Descriptor socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in place{};
  place.sin_family = AF_INET;
  place.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  ASSERT_EQ(::bind(socket.get(), reinterpret_cast<const sockaddr*>(&place), sizeof place), 0);
  EXPECT_EQ(bound_to(socket.get()).host, "127.0.0.1");
  EXPECT_GT(bound_to(socket.get()).port, 0);
  EXPECT_EQ(bound_to(-1).host, "");
}

}  // namespace
}  // namespace gossamer
