#pragma once
/// C10dLink: an edge, its wire and the two threads that move frames between them.

#include <condition_variable>
#include <exception>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "gossamer/torch/c10d/edge.h"
#include "gossamer/torch/c10d/wire.h"

namespace gossamer {

class C10dLink {
 public:
  /// `peer_rank` is the rank of `peer` in `group`. Throws what the group throws.
  C10dLink(int rank, int peer, c10::intrusive_ptr<::c10d::Backend> group, int peer_rank,
           std::shared_ptr<WakeUp> wake_up);

  /// Starts the threads, which share the link until `finish`.
  static void start(const std::shared_ptr<C10dLink>& link);

  C10dEdge& edge() { return edge_; }
  /// Fails the requests of an edge whose peer has died without a word.
  void check();
  /// Blocks until both threads have ended, both sides having closed, or `until`; true if ended.
  bool await_end(Deadline until);
  /// Makes the threads end.
  void abort();
  /// Joins the threads; should Gloo keep one beyond `limit`, it is left behind with all it uses.
  void finish(Deadline limit);

 private:
  void write_frames();
  void read_frames();
  template <class Work>
  void run(Work work);
  void break_off(const std::exception& error);

  C10dEdge edge_;
  C10dWire wire_;
  std::vector<std::thread> threads_;
  std::mutex mutex_;  // guards all below
  std::condition_variable ended_;
  int running_ = 0;
};

/// Checks the links a few times a second, in a thread of its own.
class C10dWatch {
 public:
  explicit C10dWatch(std::vector<std::shared_ptr<C10dLink>> links);

 private:
  std::jthread thread_;
};

}  // namespace gossamer
