#pragma once
/// What a trace shows besides its events: which exchange waited for which, and how busy the links
/// were.

#include <chrono>
#include <span>
#include <vector>

#include "gossamer/base/timeline.h"

namespace gossamer {

/// From a moment of the sender's exchange of a bucket to a moment of the receiver's.
struct TimelineArrow {
  int from = 0;
  int to = 0;
  int bucket = 0;
  std::chrono::nanoseconds begin{0};
  std::chrono::nanoseconds end{0};
};

/// One arrow per pair of workers and exchange, of the message that arrived last. Both of its ends
/// are inside the exchanges, as Perfetto wants it; there is none where an exchange is not known.
std::vector<TimelineArrow> arrows_of(std::span<const TimelineEvent> events,
                                     std::span<const TimelineMessage> messages);

/// A quantity from this moment on.
struct TimelineCount {
  std::chrono::nanoseconds at{0};
  double value = 0;
};

/// Bytes whose first one has left and whose last one has not arrived, of all pairs together. At
/// most some 2,000 values: of more, the last one of each of as many equal pieces of the time.
std::vector<TimelineCount> bytes_under_way(std::span<const TimelineMessage> messages);

/// Gbit/s that leave hosts for others, of all together; as many values.
std::vector<TimelineCount> rate_between_hosts(std::span<const TimelineMessage> messages,
                                              const HostShape& shape);

}  // namespace gossamer
