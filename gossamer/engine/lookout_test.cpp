#include "gossamer/engine/lookout.h"

#include <gtest/gtest.h>

#include "gossamer/base/errors.h"
#include "gossamer/transport/threads.h"

namespace gossamer {
namespace lookout_test {

/// Four workers of which all are there, and the last one looks out.
struct Four {
  std::vector<std::unique_ptr<Transport>> transports =
      make_threads_transports({.hosts = {{}, {}, {}, {}}});
  LostPeers lost{*transports[3], {0, 1, 2}};
  Lookout lookout{*transports[3], lost, 0};
};

TEST(Lookout, WhoeverIsExpelledByOneEnds) {
  Four four;
  four.lookout.look_now();
  four.transports[0]->expel(3);
  EXPECT_THROW(four.lookout.look_now(), TransportError);
}

TEST(Lookout, UnlessItHasGivenThatOneUp) {
  Four four;
  four.lookout.look_now();
  four.lost.lose({0, "it has been silent"});
  four.transports[0]->expel(3);
  EXPECT_NO_THROW(four.lookout.look_now());  // three are left
}

TEST(Lookout, WhoHasEndedDoesNotCount) {
  Four four;
  four.lookout.look_now();
  four.transports[0].reset();
  four.transports[1].reset();
  EXPECT_NO_THROW(four.lookout.look_now());
}

}  // namespace lookout_test
}  // namespace gossamer
