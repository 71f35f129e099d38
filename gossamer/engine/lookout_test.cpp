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

TEST(Lookout, WhoHasExpelledThisWorkerIsNotHeardThoughItsSendsMayStillCome) {
  Four four;
  four.lookout.look_now();
  four.lost.lose({0, "a send has failed", true});
  EXPECT_NO_THROW(four.lookout.look_now());  // three are left
  four.lost.lose({1, "a send has failed", true});
  EXPECT_THROW(four.lookout.look_now(), TransportError);
}

TEST(Lookout, OneThatHasComeBackIsHeardAgain) {
  Four four;
  four.lookout.look_now();
  four.lost.lose({0, "a send has failed", true});
  four.lookout.look_now();
  four.lost.come_back(0, 5);
  four.lookout.look_now();
  four.lost.lose({1, "a send has failed", true});
  EXPECT_NO_THROW(four.lookout.look_now());
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
