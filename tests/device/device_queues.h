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
#include <random>

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

  void seed(std::uint64_t seed) { random_.seed(seed); }
  /// How often an event is not over yet when it is asked for, at most.
  void set_most_looks(int most) { most_looks_ = most; }
  void add(std::int64_t stream, Task task);
  /// In order of a stream, up to a position.
  void run(std::int64_t stream, std::int64_t position);
  void run_all(std::int64_t stream) { run(stream, done_or_queued(stream)); }
  void run_everything();
  /// Something of some stream, or nothing.
  void run_some();

  Event record(std::int64_t stream);
  bool query(Event& event);
  void wait(const Event& event);
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
  std::map<std::int64_t, Stream> open_;
};

Queues& queues();

}  // namespace test_device
