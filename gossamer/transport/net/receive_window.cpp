#include "gossamer/transport/net/receive_window.h"

#include <algorithm>
#include <utility>

namespace gossamer {
namespace {

using Seconds = std::chrono::duration<double>;

// A connection is slow where a window is so much of what it brings, and one that was stays so until
// a window is less than that: alone on a link it is faster than beside others.
constexpr Seconds kSlow{0.002};
constexpr Seconds kFast{0.001};
constexpr std::size_t kBytes = std::size_t{16} << 10;
constexpr std::size_t kSegments = 4;
// Windows that come in a round trip: if so much of one, it may be what limits; if so many where
// more are granted, it was.
constexpr double kFull = 0.75;
constexpr double kGain = 2;
// How often that is measured: with a limit long enough to have seen a connection alone on its link.
constexpr int kRates = 64;
constexpr int kRatesTried = 8;
// Of these so many with two windows. What shares a link with a larger window has less of it
// meanwhile, so it ends there unless it brings so much more.
constexpr int kRatesWithTwo = 3;
constexpr double kPromising = 1.5;
// What is long, or much, enough not to be a burst: without a limit, what has waited behind a lost
// segment comes at once.
constexpr Seconds kMeasured{0.040};
constexpr double kMuch = 128 << 10;
constexpr double kMuchWithoutLimit = 1 << 20;
constexpr double kKept = 0.9;

}  // namespace

std::optional<double> ReceiveWindow::read(std::size_t bytes, bool all, bool is_inside,
                                          Clock::time_point now) {
  std::optional<double> rate;
  bytes_ += bytes;
  const Seconds took = since_ ? Seconds(now - *since_) : Seconds(0);
  const bool is_long = bytes_ >= kBytes && took >= kMeasured;
  const double much = is_limited() ? kMuch : kMuchWithoutLimit;
  if (is_long || (took.count() > 0 && static_cast<double>(bytes_) > much)) {
    best_ = std::max(static_cast<double>(bytes_) / took.count(), kKept * best_);
    rate = best_;
    since_.reset();
  }
  // From a moment at which all had been read until another, all that was read has come.
  if (all && !is_inside) since_.reset();
  if (all && is_inside && !since_) {
    since_ = now;
    bytes_ = 0;
  }
  return rate;
}

ReceiveWindow::State ReceiveWindow::next_state(double bytes_per_s, double window, const Way& way) {
  const bool is_slow = bytes_per_s * kSlow.count() <= window;
  const bool is_fast = bytes_per_s * kFast.count() > window;
  const double windows_per_round_trip = bytes_per_s * Seconds(way.round_trip).count() / window;
  switch (state_) {
    case State::open:
      return is_slow ? State::limited : State::open;
    case State::limited:
      if (is_fast) return State::open;
      limited_ = std::max(limited_, bytes_per_s);
      if (++rates_ < kRates || windows_per_round_trip < kFull) return State::limited;
      return State::tried;
    case State::tried:
      if (windows_per_round_trip >= kGain && bytes_per_s >= kGain * limited_) {
        return State::long_way;
      }
      if (++rates_ == kRatesWithTwo && bytes_per_s < kPromising * limited_) return State::settled;
      return rates_ < kRatesTried ? State::tried : State::settled;
    case State::settled:
      return is_fast ? State::open : State::settled;
    case State::long_way:
      break;
  }
  return State::long_way;
}

bool ReceiveWindow::may_change(double bytes_per_s) const {
  if (state_ == State::long_way) return false;
  return state_ != State::open || bytes_per_s * kSlow.count() <= static_cast<double>(kBytes);
}

std::optional<std::size_t> ReceiveWindow::fit(double bytes_per_s, const Way& way) {
  const std::size_t window = std::max(kBytes, kSegments * way.segment_bytes);
  const State before =
      std::exchange(state_, next_state(bytes_per_s, static_cast<double>(window), way));
  if (state_ != before) {  // what was measured is of the state before
    best_ = 0;
    rates_ = 0;
    if (state_ == State::limited) limited_ = 0;
  }
  return is_limited() ? std::optional(windows() * window) : std::nullopt;
}

std::size_t ReceiveWindow::windows() const {
  if (state_ != State::tried) return 1;
  return rates_ < kRatesWithTwo ? 2 : 4;
}

}  // namespace gossamer
