#pragma once
/// EventLoop: a thread that waits for many descriptors at once.

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <thread>
#include <unordered_map>

#include "gossamer/base/shared_memory.h"
#include "gossamer/transport/transport.h"

namespace gossamer {

/// Note [Waiting threads do the work]: a thread that would only wait for the loop's thread to
/// handle an event enters the loop and handles it itself, which saves a change of threads per
/// event. The loop's own thread steps aside, and comes back soon after the last such thread has
/// left: not at once, for most of them return. Beats stay with it.
class EventLoop {
 public:
  enum class Kind : std::uint32_t {
    none,
    local_listener,
    stream_listener,
    unverified,
    out,
    in,
    process
  };
  /// Of events that are not a peer's yet.
  static constexpr bool is_of_acceptor(Kind kind) {
    return kind == Kind::local_listener || kind == Kind::stream_listener ||
           kind == Kind::unverified;
  }
  struct Key {
    Kind kind = Kind::none;
    std::uint32_t number = 0;
  };

  /// Throws IoError when the system has no more descriptors.
  explicit EventLoop(Clock::duration beat);
  ~EventLoop();

  /// The thread calls `handle` for each event, and `beat` about once per beat.
  void start(std::function<void(Key)> handle, std::function<void()> beat);
  /// Nothing is called any more when it returns. May be called again.
  void stop();

  /// Makes this thread the one that handles events; false when another one has entered. Waits while
  /// the loop's thread is handling some.
  bool enter();
  /// For the thread that has entered: handles the next events; returns after that, after wake() or
  /// at `until` (rounded up to milliseconds).
  void wait(Deadline until);
  /// `hurry`: others wait for events, so that the loop's thread is to be back at once.
  void leave(bool hurry);
  /// Of a thread that has entered, until it leaves; `waiting`: how many others wait.
  struct Visit {
    EventLoop& loop;
    const std::atomic<int>& waiting;
    ~Visit() { loop.leave(waiting > 0); }
  };
  /// Ends the wait of another thread that has entered.
  void wake();

  // Not for several threads at once; those above are.

  /// `writes`: it is an event as well when it can be written to.
  void watch(int descriptor, Key key, bool writes);
  bool watches(int descriptor) const { return watched_.contains(descriptor); }
  /// To be called before the descriptor is closed.
  void forget(int descriptor);
  /// There is one event when the process ends. Does nothing for this process, where the system does
  /// not tell, and again for the same key.
  void watch_process(int process, Key key);
  /// The process that is watched with this number is another one from now on.
  void forget_process(std::uint32_t number) { processes_.erase(number); }
  /// Whether the one that is watched now has ended.
  bool has_process_ended(std::uint32_t number) const;

 private:
  using Lock = std::unique_lock<std::mutex>;

  void run(const std::stop_token& stop);
  bool step_aside(Lock& lock, const std::stop_token& stop, Deadline limit);
  bool handle_once(Clock::duration limit);

  const Clock::duration beat_;
  Descriptor epoll_;
  Descriptor wake_;
  std::unordered_map<int, bool> watched_;  ///< whether it is watched for writing
  std::unordered_map<std::uint32_t, Descriptor> processes_;
  std::function<void(Key)> on_event_;
  std::function<void()> on_beat_;
  bool came_soon_ = false;  ///< the last event that was slept for; for the thread that handles it

  std::mutex turns_;  // guards all below but entered_, which it guards for writing
  std::condition_variable turn_changed_;
  std::atomic<std::thread::id> entered_;  ///< the thread that has
  std::uint64_t entries_ = 0;
  Deadline back_at_ = {};  ///< before that the loop's thread expects that one to return
  bool handles_ = false;   ///< the loop's thread does
  bool rests_ = false;     ///< it does until the thread that has entered leaves
  std::jthread thread_;
};

}  // namespace gossamer
