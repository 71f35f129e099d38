#pragma once
/// The queue of what is going to happen: the earliest comes first, of those the first that came.

#include <algorithm>
#include <cstdint>
#include <vector>

#include "gossamer/sim/sim_time.h"

namespace gossamer::sim {

/// A binary heap. Ties are broken by the order of the pushes, so that a run can be repeated.
template <class T>
class EventQueue {
 public:
  struct Entry {
    SimTime at{0};
    std::uint64_t order = 0;
    T event;
  };

  void push(SimTime at, const T& event) {
    heap_.push_back({at, ++last_order_, event});
    std::push_heap(heap_.begin(), heap_.end(), later);
  }
  bool empty() const { return heap_.empty(); }
  /// Of the next event; the queue must not be empty.
  SimTime next_time() const { return heap_.front().at; }
  Entry pop() {
    std::pop_heap(heap_.begin(), heap_.end(), later);
    const Entry entry = heap_.back();
    heap_.pop_back();
    return entry;
  }

 private:
  static bool later(const Entry& a, const Entry& b) {
    return a.at != b.at ? a.at > b.at : a.order > b.order;
  }

  std::vector<Entry> heap_;
  std::uint64_t last_order_ = 0;
};

}  // namespace gossamer::sim
