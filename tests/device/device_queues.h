#pragma once
/// The queues of the test device: what was asked for and has not been done yet.
///
/// Operators run at once. A copy that need not be waited for is done later: at a time drawn from a
/// seed, at the latest when an event that covers it is waited for or has been seen as over. So
/// whoever leaves out a wait works with old values, or has his own overwritten, and ends with other
/// numbers.

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <random>
#include <set>
#include <utility>

namespace test_device {

using Task = std::function<void()>;

/// What was done since the counts were taken last.
struct Counts {
  std::int64_t blocking_copies = 0;
  std::int64_t late_copies = 0;
  std::int64_t bytes_out = 0;  ///< device to host
  std::int64_t bytes_in = 0;   ///< host to device
  std::int64_t scalar_reads = 0;
  std::int64_t host_waits = 0;  ///< for what was not over
  std::int64_t queries = 0;
};

class Queues {
 public:
  struct Event {
    std::int64_t stream = 0;
    std::int64_t position = 0;  ///< the tasks of the stream up to there
    int looks = 0;              ///< that will still see it as not over
  };

  /// Does what is still to be done, and numbers streams from 1 again.
  void seed(std::uint64_t seed);
  /// From now on until seed(), what stream `waiter` waits for on stream `recorded` is not waited
  /// for; kHost: neither does the host, which sees it as over.
  void leave_out(std::int64_t waiter, std::int64_t recorded) {
    left_out_.insert({waiter, recorded});
  }
  bool is_left_out(std::int64_t waiter, const Event& event) const {
    return left_out_.contains({waiter, event.stream});
  }
  static constexpr std::int64_t kHost = -1;
  /// How often an event is not over yet when it is asked for, at most.
  void set_most_looks(int most) { most_looks_ = most; }
  void add(std::int64_t stream, Task task);
  /// In order of a stream, up to a position.
  void run(std::int64_t stream, std::int64_t position);
  void run_all(std::int64_t stream) { run(stream, done_or_queued(stream)); }
  void run_everything();
  /// Something of some stream, or nothing.
  void run_some();

  /// To be called first by whatever the program asks of the device. Throws where that is to fail.
  void begin_call();
  /// The call after `calls` others fails; before it the device is sound.
  void fail_after(std::int64_t calls) { sound_calls_ = calls; }

  Event record(std::int64_t stream);
  bool query(Event& event);
  void wait(Event& event);
  bool is_over(const Event& event) const;

  std::int64_t new_stream() { return ++streams_; }
  std::recursive_mutex& mutex() { return mutex_; }
  Counts counts;

 private:
  struct Stream {
    std::deque<Task> waiting;
    std::int64_t done = 0;
  };
  std::int64_t done_or_queued(std::int64_t stream);

  std::recursive_mutex mutex_;
  std::mt19937_64 random_{1};
  int most_looks_ = 3;
  std::int64_t streams_ = 0;
  std::optional<std::int64_t> sound_calls_;
  std::map<std::int64_t, Stream> open_;
  std::set<std::pair<std::int64_t, std::int64_t>> left_out_;
};

Queues& queues();

}  // namespace test_device
