#include "gossamer/transport/net/receive_window.h"

#include <gtest/gtest.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>

#include "gossamer/transport/net/stream_socket.h"

namespace gossamer {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

constexpr Way kShort{.round_trip = microseconds(50), .segment_bytes = 1448};
constexpr std::size_t kKiB = 1024;

using Window = std::optional<std::size_t>;
constexpr Window kLimit = 16 * kKiB;

Way way_of_us(int round_trip_us) {
  return {.round_trip = microseconds(round_trip_us), .segment_bytes = 1448};
}

TEST(WindowFit, IsTheSameForAllSlowConnections) {
  for (const double rate : {0.0, 0.6e6, 2.5e6}) {
    ReceiveWindow window;
    for (int k = 0; k < 100; ++k) EXPECT_EQ(window.fit(rate, kShort), kLimit);
  }
}

TEST(WindowFit, HoldsSomeSegments) {
  ReceiveWindow window;
  EXPECT_EQ(window.fit(1e6, {.round_trip = microseconds(50), .segment_bytes = 8948}), 4 * 8948);
}

TEST(WindowFit, LeavesFastLinksAlone) {
  ReceiveWindow window;
  EXPECT_FALSE(window.may_change(300e6));
  EXPECT_EQ(window.fit(300e6, kShort), std::nullopt);
  EXPECT_TRUE(window.may_change(1e6));
  EXPECT_EQ(window.fit(1e6, kShort), kLimit);
  EXPECT_TRUE(window.may_change(300e6));
  EXPECT_EQ(window.fit(300e6, kShort), std::nullopt);  // slow for a moment
}

/// Alone on a link that it shares at times.
TEST(WindowFit, StaysWhereAConnectionIsSometimesTwiceAsFast) {
  ReceiveWindow window;
  EXPECT_EQ(window.fit(6e6, kShort), kLimit);
  for (int k = 0; k < 100; ++k) EXPECT_EQ(window.fit(k % 2 == 0 ? 12e6 : 6e6, kShort), kLimit);
  ReceiveWindow other;
  EXPECT_EQ(other.fit(12e6, kShort), std::nullopt);
}

/// What a window lets through in a round trip is measured and decides about the next one.
TEST(WindowFit, IsNotWhatKeepsAConnectionSlow) {
  constexpr double kLink = 100e6;
  for (const int round_trip_us : {20, 200, 2'000, 20'000, 200'000}) {
    ReceiveWindow window;
    const auto rate = [&](Window granted) {
      if (!granted) return kLink;
      return std::min(kLink, 0.9 * static_cast<double>(*granted) / (round_trip_us * 1e-6));
    };
    Window granted = window.fit(0.1e6, way_of_us(round_trip_us));  // as it begins
    EXPECT_EQ(granted, kLimit);
    for (int k = 0; k < 100; ++k) {
      granted = window.fit(rate(granted), way_of_us(round_trip_us));
      if (k < 68) continue;
      EXPECT_EQ(granted, std::nullopt) << round_trip_us << " us, rate " << k;
    }
  }
}

/// The connection was made while the link was busy: no round trip has been seen without a queue.
TEST(WindowFit, TriesOnceWhetherAQueueIsWhatMakesTheWayLong) {
  const Way way = way_of_us(14'000);
  ReceiveWindow window;
  EXPECT_EQ(window.fit(0.5e6, way), kLimit);
  int tried = 0;
  for (int k = 0; k < 100; ++k) {
    const Window granted = window.fit(k % 2 == 0 ? 1.2e6 : 0.9e6, way);
    ASSERT_TRUE(granted);  // a system that promises more does not take it back
    EXPECT_LE(*granted, 2 * *kLimit);
    if (granted != kLimit) ++tried;
  }
  EXPECT_EQ(tried, 3);
  EXPECT_EQ(window.fit(1.2e6, way), kLimit);
  EXPECT_EQ(window.fit(50e6, way), std::nullopt);  // the link has become a faster one
}

/// A long queue brings many windows in a round trip, but no more in a second.
TEST(WindowFit, ALongQueueIsNotALongWay) {
  const Way way = way_of_us(40'000);
  ReceiveWindow window;
  EXPECT_EQ(window.fit(0.5e6, way), kLimit);
  int tried = 0;
  for (int k = 0; k < 100; ++k) {
    if (window.fit(k % 3 == 0 ? 2.5e6 : 0.9e6, way) != kLimit) ++tried;
  }
  EXPECT_EQ(tried, 3);
}

/// It had half of its link while it was measured, and has more of it with a larger window.
TEST(WindowFit, HavingMoreOfALinkIsNotALongWay) {
  const Way way = way_of_us(14'000);
  ReceiveWindow window;
  EXPECT_EQ(window.fit(0.5e6, way), kLimit);
  std::size_t most = 0;
  for (int k = 0; k < 100; ++k) {
    const std::size_t granted = window.fit(k < 64 ? 1.2e6 : 2.2e6, way).value_or(1 << 30);
    most = std::max(most, granted);
  }
  EXPECT_EQ(most, 4 * *kLimit);
  EXPECT_EQ(window.fit(2.2e6, way), kLimit);
}

TEST(ReceiveWindow, MeasuresBetweenMomentsAtWhichAllWasRead) {
  ReceiveWindow window;
  const Clock::time_point start;
  EXPECT_FALSE(window.read(50'000, true, true, start));
  EXPECT_FALSE(window.read(80'000, true, true, start + milliseconds(20)));  // may be a burst
  const auto rate = window.read(20'000, true, true, start + milliseconds(40));
  ASSERT_TRUE(rate);
  EXPECT_DOUBLE_EQ(*rate, 2.5e6);
}

TEST(ReceiveWindow, MeasuresWhatIsTooMuchForABurst) {
  ReceiveWindow window;
  const Clock::time_point start;
  EXPECT_FALSE(window.read(1'000, true, true, start));
  EXPECT_FALSE(window.read(200'000, true, true, start + milliseconds(2)));
  EXPECT_EQ(window.read(1'800'000, true, true, start + milliseconds(20)), 100e6);
  EXPECT_EQ(window.fit(1e6, kShort), kLimit);  // so that nothing can have waited
  EXPECT_EQ(window.read(200'000, true, true, start + milliseconds(22)), 100e6);
}

TEST(ReceiveWindow, EndsAMeasurementWithTheFrame) {
  ReceiveWindow window;
  const Clock::time_point start;
  EXPECT_FALSE(window.read(1'000, true, true, start));
  EXPECT_EQ(window.read(100'000, true, false, start + milliseconds(50)), 2e6);
}

TEST(ReceiveWindow, DoesNotCountWhatTheSenderDidNotHave) {
  ReceiveWindow window;
  const Clock::time_point start;
  EXPECT_FALSE(window.read(1'000, true, true, start));
  EXPECT_FALSE(window.read(1'000, true, false, start + milliseconds(1)));
  EXPECT_FALSE(window.read(50'000, true, true, start + milliseconds(500)));
  EXPECT_EQ(window.read(100'000, true, true, start + milliseconds(550)), 2e6);
}

TEST(ReceiveWindow, RemembersTheBest) {
  ReceiveWindow window;
  const Clock::time_point start;
  EXPECT_FALSE(window.read(0, true, true, start));
  EXPECT_EQ(window.read(200'000, true, true, start + milliseconds(50)), 4e6);
  const auto later = window.read(100'000, true, true, start + milliseconds(100));
  ASSERT_TRUE(later);
  EXPECT_LT(*later, 4e6);
  EXPECT_GT(*later, 2e6);
  double last = 0;
  for (int k = 3; k < 50; ++k) {
    last = window.read(100'000, true, true, start + milliseconds(50 * k)).value_or(0);
  }
  EXPECT_DOUBLE_EQ(last, 2e6);
}

TEST(ReceiveWindow, DoesNotCountWhatLayThereUnread) {
  ReceiveWindow window;
  const Clock::time_point start;
  EXPECT_FALSE(window.read(500'000, false, true, start));
  EXPECT_FALSE(window.read(500'000, true, true, start + milliseconds(1)));
}

/// A connection within this machine.
struct Connection {
  StreamListener listener = listen_for_streams("127.0.0.1");
  Descriptor sender = connect_stream(listener.address);
  Descriptor receiver;

  Connection() {
    while (!receiver) receiver = accept_stream(listener.socket);
  }

  /// What the receiver grants, after so much has been sent and read.
  std::size_t granted_after(std::size_t bytes) const {
    std::array<std::byte, 4096> block{};
    for (std::size_t done = 0; done < bytes; done += block.size()) {
      std::size_t sent = 0;
      std::size_t read = 0;
      while (read < block.size()) {
        const ssize_t gone = ::send(sender.get(), block.data(), block.size() - sent, MSG_DONTWAIT);
        if (gone > 0) sent += static_cast<std::size_t>(gone);
        const ssize_t got = ::recv(receiver.get(), block.data(), block.size(), MSG_DONTWAIT);
        if (got > 0) read += static_cast<std::size_t>(got);
      }
    }
    tcp_info info = {};
    socklen_t length = sizeof(info);
    EXPECT_EQ(::getsockopt(sender.get(), IPPROTO_TCP, TCP_INFO, &info, &length), 0);
    return info.tcpi_snd_wnd;
  }
};

/// Kernels may forget the limit itself, but not the buffer of four times as much.
TEST(LimitWindow, HoldsUntilItIsTakenBack) {
  const Connection connection;
  EXPECT_GT(connection.granted_after(32'768 * kKiB), 64 * kKiB);
  limit_window(connection.receiver.get(), 16 * kKiB);
  EXPECT_LE(connection.granted_after(32'768 * kKiB), 64 * kKiB);
  limit_window(connection.receiver.get(), std::nullopt);
  EXPECT_GT(connection.granted_after(32'768 * kKiB), 64 * kKiB);
}

TEST(WayOf, IsShortWithinAMachine) {
  const Connection connection;
  connection.granted_after(4 * kKiB);
  const Way way = way_of(connection.sender.get());
  EXPECT_LT(way.round_trip, milliseconds(100));
  EXPECT_GT(way.segment_bytes, 1000);
}

}  // namespace
}  // namespace gossamer
