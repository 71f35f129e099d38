#pragma once
/// RollCall: workers tell each other what collective method they have come to, so that one that
/// waits elsewhere hears of it at once.

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "gossamer/transport/transport.h"

namespace gossamer {

/// How far a worker is: its steps, and the averages of gradients in its backward passes.
struct Progress {
  std::int64_t steps = 0;
  std::int64_t passes = 0;
};

/// Told now and then, once per call: the ranks of which nothing has come yet, and where they are
/// waited for.
using ReportWaiting = std::function<void(const std::vector<int>& ranks, const std::string& where)>;

struct RollCallOptions {
  std::vector<int> peers;      ///< that this worker exchanges anything with
  bool compares_steps = true;  ///< false: workers may step unequally often
  ReportWaiting report = nullptr;
  double patience_s = 10;  ///< before it is told
};

/// Note [Roll call]: at the start of every collective method each worker sends all its peers a
/// note with the method's name and how far it is, and has a receive posted for each of theirs. A
/// worker that waits in a step, or in a backward pass, looks at these notes now and then. One from
/// a peer that has not done that step says that it never will: both fail at once, and say so,
/// instead of at the end of a timeout. Notes have one number per collective method. Whether workers
/// that have come to the same number have come to the same method, after equally many steps, the
/// method itself finds out, from all workers and not only from peers.
class RollCall {
 public:
  /// The transport must outlive this.
  RollCall(Transport& transport, RollCallOptions options);
  ~RollCall();
  RollCall(const RollCall&) = delete;
  RollCall& operator=(const RollCall&) = delete;

  /// Tells the peers that this worker has come to `what`.
  void come_to(const std::string& what, Progress progress);
  /// All workers have come to it.
  void all_have_come();
  /// For a thread that waits, in a step or not, as often as it likes: throws std::invalid_argument
  /// for what will never come, after telling the peers.
  void look(Progress progress, bool in_step);

 private:
  struct Note {
    std::int64_t steps = 0;
    std::int64_t passes = 0;
    std::int32_t is_step = 0;
    char what[44] = {};
  };
  /// The note with the next number of one peer.
  struct Slot {
    int peer = 0;
    std::int64_t number = 0;
    Request request = 0;  ///< 0: it has come or never will
    bool has_come = false;
    Note landing;
  };
  struct Sent {
    Request request = 0;
    std::unique_ptr<Note> note;
  };

  void expect();
  void collect();
  void tell(const std::string& what, Progress progress, bool is_step);
  void report_waiting();
  [[noreturn]] void refuse(const Slot& slot, Progress progress);

  Transport& transport_;
  const RollCallOptions options_;
  const int rank_;
  std::mutex mutex_;  ///< guards all below
  std::int64_t number_ = 0;
  std::string what_;  ///< that this worker has come to; empty: nothing
  Clock::time_point came_at_;
  Clock::time_point next_look_;
  bool has_reported_ = false;
  std::vector<std::unique_ptr<Slot>> slots_;  ///< of `number_` and, where they were late, before
  std::vector<Sent> sent_;
};

}  // namespace gossamer
