#include "gossamer/transport/net/receive_window.h"

#include <algorithm>

namespace gossamer {
namespace {

using Seconds = std::chrono::duration<double>;

constexpr Seconds kQueue{0.004};
constexpr std::size_t kBytes = std::size_t{16} << 10;
constexpr std::size_t kSegments = 4;
// What is long, or much, enough not to be a burst.
constexpr Seconds kMeasured{0.040};
constexpr double kMuch = 128 << 10;
constexpr double kKept = 0.9;

}  // namespace

std::optional<std::size_t> window_for(double bytes_per_s, const Way& way) {
  const std::size_t window = std::max(kBytes, kSegments * way.segment_bytes);
  // Twice what the way holds: a connection that is slow because of the window is not limited again.
  const double enough = bytes_per_s * (kQueue + 2 * Seconds(way.round_trip)).count();
  if (enough > static_cast<double>(window)) return std::nullopt;
  return window;
}

std::optional<double> ReceiveWindow::read(std::size_t bytes, bool all, bool is_inside,
                                          Clock::time_point now) {
  std::optional<double> rate;
  bytes_ += bytes;
  const Seconds took = since_ ? Seconds(now - *since_) : Seconds(0);
  const bool is_long = bytes_ >= kBytes && took >= kMeasured;
  if (is_long || (took.count() > 0 && static_cast<double>(bytes_) > kMuch)) {
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

}  // namespace gossamer
