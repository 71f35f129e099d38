#include "gossamer/transport/net/receive_window.h"

#include <algorithm>

namespace gossamer {
namespace {

using Seconds = std::chrono::duration<double>;

constexpr Seconds kQueue{0.005};
constexpr std::size_t kLeastBytes = std::size_t{16} << 10;
constexpr std::size_t kLeastSegments = 4;
// Links for which this is too little have short queues anyway.
constexpr double kMostBytes = 1 << 20;
// Enough not to be a burst.
constexpr std::size_t kMeasuredBytes = std::size_t{16} << 10;

}  // namespace

std::optional<std::size_t> window_for(double bytes_per_s, const Way& way) {
  // Twice what the way holds, so that a window that was too small grows.
  const double bytes = bytes_per_s * (kQueue + 2 * Seconds(way.round_trip)).count();
  if (bytes > kMostBytes) return std::nullopt;
  return std::max(
      {static_cast<std::size_t>(bytes), kLeastBytes, kLeastSegments * way.segment_bytes});
}

std::optional<double> ReceiveWindow::read(std::size_t bytes, bool all, bool is_inside,
                                          Clock::time_point now) {
  std::optional<double> rate;
  bytes_ += bytes;
  if (since_ && now > *since_ && bytes_ >= kMeasuredBytes) {
    rate = static_cast<double>(bytes_) / Seconds(now - *since_).count();
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
