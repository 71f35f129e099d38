#pragma once
/// EventLoop: a thread that waits for many descriptors at once.

#include <cstdint>
#include <functional>
#include <thread>
#include <unordered_map>

#include "gossamer/base/shared_memory.h"
#include "gossamer/transport/transport.h"

namespace gossamer {

class EventLoop {
 public:
  enum class Kind : std::uint32_t { none, door, stream_door, stranger, out, in, process };
  struct Key {
    Kind kind = Kind::none;
    std::uint32_t number = 0;
  };

  /// Throws IoError when the system has no more descriptors.
  explicit EventLoop(Clock::duration beat);
  ~EventLoop();

  /// The thread calls `hear` for what has news, and `beat` about once per beat.
  void start(std::function<void(Key)> hear, std::function<void()> beat);
  /// Nothing is called any more when it returns. May be called again.
  void stop();

  // Not for several threads at once; start() and stop() are.

  /// `writes`: there is news as well when it can be written to.
  void watch(int descriptor, Key key, bool writes);
  bool watches(int descriptor) const { return watched_.contains(descriptor); }
  /// To be called before the descriptor is closed.
  void forget(int descriptor);
  /// There is news once when the process ends. Does nothing for this process and where the system
  /// does not tell; again for the same key neither.
  void watch_process(int process, Key key);

 private:
  void run(const std::stop_token& stop);

  const Clock::duration beat_;
  Descriptor epoll_;
  Descriptor wake_;
  std::unordered_map<int, bool> watched_;  ///< whether it is watched for writing
  std::unordered_map<std::uint32_t, Descriptor> processes_;
  std::function<void(Key)> on_news_;
  std::function<void()> on_beat_;
  std::jthread thread_;
};

}  // namespace gossamer
