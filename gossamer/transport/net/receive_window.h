#pragma once
/// ReceiveWindow: how much of what a TCP connection brings may be under way.

#include <chrono>
#include <cstddef>
#include <optional>

#include "gossamer/transport/transport.h"

namespace gossamer {

/// What the system knows of the way to the other end.
struct Way {
  std::chrono::microseconds round_trip{0};  ///< at its shortest
  std::size_t segment_bytes = 0;
};

/// What may be under way on a connection that brings so many bytes per second; none: no limit.
///
/// Note [Short queues]: left to itself, TCP fills the buffers of a slow link, for a sender goes
/// faster until something is lost. Then all that follows waits for tens of milliseconds, and a
/// connection that happens to have more in the queue than another keeps more of the link for
/// seconds: of exchanges of one size that begin together some end late, and the step with them,
/// while links idle. So of a slow connection, for which 16 KiB are 4 ms of what it brings, who
/// receives grants no more than that: equal windows are equal shares, nothing is lost, and what is
/// said meanwhile does not wait. Faster ones are left alone: their windows would have to differ.
std::optional<std::size_t> window_for(double bytes_per_s, const Way& way);

/// Measures how fast a connection brings what it is known to have more of: the best of late.
class ReceiveWindow {
 public:
  /// So many bytes have been read up to `now`. `all`: no more are there. `is_inside`: others of the
  /// same frame are still to come. The rate in bytes per second, now and then.
  std::optional<double> read(std::size_t bytes, bool all, bool is_inside, Clock::time_point now);

  bool is_limited = false;  ///< what may be under way

 private:
  std::optional<Clock::time_point> since_;  ///< when nothing was there, but more to come
  std::size_t bytes_ = 0;                   ///< that have come since
  double best_ = 0;
};

}  // namespace gossamer
