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

/// Measures how fast a connection brings what it is known to have more of, the best of late, and
/// says how much of it may be under way.
///
/// Note [Short queues]: left to itself, TCP fills the buffers of a slow link, for a sender goes
/// faster until something is lost. Then all that follows waits for tens of milliseconds, and a
/// connection that happens to have more in the queue than another keeps more of the link for
/// seconds: of exchanges of one size that begin together some end late, and the step with them,
/// while links idle. So of a slow connection, for which 16 KiB are 2 ms of what it brings, who
/// receives grants no more than that: equal windows are equal shares, nothing is lost, and frames
/// that are sent meanwhile do not wait. One that was slow stays so until 16 KiB are less than 1 ms:
/// beside others it was slow, alone on the same link it is not. Faster ones are left alone: their
/// windows would have to differ.
///
/// Without a limit, what comes behind a lost segment waits for it and then comes at once, as if the
/// link were fast. So without one a rate is that of 40 ms or of 1 MiB, with one also of 128 KiB.
///
/// Over a long way a window may be all that makes a connection slow: then what comes in a round
/// trip is the window. But so it is where a queue is all that makes the way long, and a connection
/// that was made while its link was busy has seen no shorter round trip. So larger windows are
/// tried once, after enough measurements to have been alone on the link in some: two windows, and
/// four where two brought more. Where a round trip then brings two windows, and a second twice as
/// much as the best before, the limit is taken back, else it is there for good. To try without a
/// limit would be simpler, but the system then promises megabytes, takes no promise back, and the
/// sender fills the link's queue until they are used up: for seconds, in which whatever shares the
/// link crawls.
class ReceiveWindow {
 public:
  /// So many bytes have been read up to `now`. `all`: no more are there. `is_inside`: others of the
  /// same frame are still to come. The rate in bytes per second, now and then.
  std::optional<double> read(std::size_t bytes, bool all, bool is_inside, Clock::time_point now);

  /// False where fit() would change nothing, whatever the way.
  bool may_change(double bytes_per_s) const;
  /// What may be under way on a connection that brings so many bytes per second; none: no limit.
  std::optional<std::size_t> fit(double bytes_per_s, const Way& way);
  bool is_limited() const { return state_ != State::open && state_ != State::long_way; }

 private:
  enum class State {
    open,
    limited,
    tried,    ///< with larger windows, to see what becomes of it
    settled,  ///< limited, and the window is not what makes it slow
    long_way,
  };
  State next_state(double bytes_per_s, double window, const Way& way);
  std::size_t windows() const;

  std::optional<Clock::time_point> since_;  ///< when nothing was there, but more to come
  std::size_t bytes_ = 0;                   ///< that have come since
  double best_ = 0;
  State state_ = State::open;
  double limited_ = 0;  ///< the best while it was limited
  int rates_ = 0;       ///< measured in this state
};

}  // namespace gossamer
