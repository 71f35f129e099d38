#pragma once
/// What workers did and what they sent, moment by moment, and how that is written as a trace: the
/// same for runs and simulations.

#include <chrono>
#include <cstdint>
#include <ostream>
#include <span>
#include <string_view>

#include "gossamer/base/cluster.h"

namespace gossamer {

/// What a worker did from `begin` to `end`; an exchange goes on beside the others.
struct TimelineEvent {
  enum class Kind { forward, backward, update, wait, exchange };
  Kind kind = Kind::forward;
  int worker = 0;
  std::int64_t step = 0;
  int bucket = -1;  ///< −1: none in particular
  std::chrono::nanoseconds begin{0};
  std::chrono::nanoseconds end{0};
  bool operator==(const TimelineEvent&) const = default;
};

/// One payload that has arrived.
struct TimelineMessage {
  std::chrono::nanoseconds sent{0};     ///< when its sender was ready
  std::chrono::nanoseconds begun{0};    ///< when its first byte left
  std::chrono::nanoseconds left{0};     ///< when its last byte did
  std::chrono::nanoseconds arrived{0};  ///< when its receiver had all of it
  int from = 0;
  int to = 0;
  std::int64_t bytes = 0;
  std::int64_t step = 0;
  int bucket = 0;
  int phase = 0;  ///< of the sender's Plan
  bool operator==(const TimelineMessage&) const = default;
};

/// What made a trace, where nothing beside it says it.
struct TraceOrigin {
  std::string_view method;   ///< how the workers trained
  std::int64_t steps = 0;    ///< that were asked for; 0: as many as there are
  std::int64_t warm_up = 0;  ///< those before them, which no mean takes in
};

/// Writes Chrome's JSON, for Perfetto or chrome://tracing: a process per worker, with a track for
/// what it does and one per bucket for its exchanges; and a process for the links, with one track
/// per ordered pair of workers that shows when bytes of each message moved, and with counters of
/// the bytes under way and of the rate between hosts. Arrows lead from exchanges to those that
/// waited for them. Times are in µs, with the nanoseconds behind the point. Workers without events
/// and pairs without messages are absent.
void write_trace(std::ostream& out, std::span<const TimelineEvent> events,
                 std::span<const TimelineMessage> messages, const HostShape& shape,
                 const TraceOrigin& origin = {});

}  // namespace gossamer
