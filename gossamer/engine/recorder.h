#pragma once
/// Recorder: what one worker did and heard in its last steps, for a trace.

#include <chrono>
#include <cstdint>
#include <deque>
#include <mutex>
#include <span>
#include <vector>

#include "gossamer/base/timeline.h"
#include "gossamer/engine/overlap.h"
#include "gossamer/transport/transport.h"

namespace gossamer {

/// One end of a bucket's message.
struct MessageEnd {
  int peer = 0;
  Tag tag;
  std::int64_t step = 0;
  int phase = 0;  ///< of the Plan of this end
  std::int64_t bytes = 0;
  Clock::time_point at;  ///< when it was sent, or had arrived
};

/// What a worker did, sent and took, each in its order. Times of events are those of Clock, since
/// its epoch.
struct Records {
  int worker = 0;
  std::deque<TimelineEvent> work;
  std::deque<TimelineEvent> exchanges;
  std::deque<MessageEnd> sent;
  std::deque<MessageEnd> arrived;
};

/// Note [Recorded steps]: a worker does one thing after the other, so whoever knows what has just
/// been done says so, and it began where the thing before ended: a step has no gaps. The engine
/// tells of updates and waits; the layer above of what it computed before it calls the engine, and
/// of pauses. Functions may be called from any thread.
class Recorder {
 public:
  /// Keeps the last `steps` steps besides the one under way.
  Recorder(int worker, std::int64_t steps);

  /// From now on the worker is in this step; forgets what is too old, and everything where a run
  /// goes back to an earlier step.
  void begin_step(std::int64_t step);
  /// What was between the last call and now belongs to no step.
  void resume();
  /// From the last call until now the worker did this; one event with the same just before. Of a
  /// wait below 1 µs nothing is kept: its time goes to what is done next.
  void did(TimelineEvent::Kind kind, int bucket = -1);
  /// This step's exchange of a bucket: from launch until all that it was to receive had arrived;
  /// nothing where that is nothing.
  void exchanged(int bucket, std::span<const Interval> journeys);
  void sent(const MessageEnd& message);
  void arrived(const MessageEnd& message);
  /// The step that the worker is in.
  std::int64_t step() const;

  /// A moment that all workers share, where their traces begin to count.
  void set_start(std::chrono::system_clock::time_point start);
  std::chrono::system_clock::time_point start() const;
  Records records() const;

 private:
  const std::int64_t steps_;
  mutable std::mutex mutex_;  ///< guards everything below
  std::chrono::system_clock::time_point start_ = {};
  std::int64_t step_ = 0;
  std::chrono::nanoseconds reached_;
  Records records_;
};

/// What the recorders of one process have.
struct Timeline {
  std::vector<TimelineEvent> events;
  std::vector<TimelineMessage> messages;
};

/// The records of the workers of one process, in nanoseconds since `origin`. Messages are those
/// that arrived at them, without those for a step that none of them has begun. An edge is shown as
/// if it carried one message after the other: a message has begun when it was sent and the one
/// before had arrived, and has left when it arrived. Where the sender is in another process, the
/// receiver's launch of the same exchange stands for the moment of sending, and the receiver's
/// phase for the sender's.
Timeline timeline_of(std::span<const Records> all, Clock::time_point origin);

/// What Clock shows when the system's clock, as it goes now, shows `moment`.
Clock::time_point steady_at(std::chrono::system_clock::time_point moment);

}  // namespace gossamer
