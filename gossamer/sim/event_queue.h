#pragma once
/// The queue of what is going to happen: the earliest comes first, of those the first that came.

#include <algorithm>
#include <array>
#include <cstdint>
#include <utility>
#include <vector>

#include "gossamer/sim/sim_time.h"

namespace gossamer::sim {

/// A binary heap of moments, each with a list of its events: workers that are alike do much at the
/// same nanosecond. Ties are broken by the order of the pushes, so that a run can be repeated.
template <class T>
class EventQueue {
 public:
  struct Entry {
    SimTime at{0};
    T event;
  };

  EventQueue() { recent_.fill(kNone); }

  void push(SimTime at, const T& event) {
    const std::int32_t node = new_of(nodes_, free_node_);
    nodes_[index(node)] = {event, kNone};
    const std::int32_t moment = moment_at(at);
    Moment& its = moments_[index(moment)];
    if (its.first == kNone) {
      its.first = node;
    } else {
      nodes_[index(its.last)].next = node;
    }
    its.last = node;
  }
  bool empty() const { return heap_.empty(); }
  /// Of the next event; the queue must not be empty.
  SimTime next_time() const { return heap_.front().at; }
  Entry pop() {
    const Due due = heap_.front();
    Moment& its = moments_[index(due.moment)];
    const std::int32_t node = its.first;
    const Entry entry{due.at, nodes_[index(node)].event};
    its.first = nodes_[index(node)].next;
    nodes_[index(node)].next = std::exchange(free_node_, node);
    if (its.first != kNone) return entry;
    std::pop_heap(heap_.begin(), heap_.end(), later);
    heap_.pop_back();
    its.at = kNever;
    its.next = std::exchange(free_moment_, due.moment);
    return entry;
  }

 private:
  static constexpr std::int32_t kNone = -1;
  static constexpr SimTime kNever = SimTime::min();

  struct Node {
    T event;
    std::int32_t next = kNone;  ///< of the same moment, or of those that are free
  };
  struct Moment {
    SimTime at = kNever;  ///< of those that are free: never
    std::int32_t first = kNone;
    std::int32_t last = kNone;
    std::int32_t next = kNone;  ///< of those that are free
  };
  struct Due {
    SimTime at{0};
    std::uint64_t order = 0;
    std::int32_t moment = 0;
  };
  static bool later(const Due& a, const Due& b) {
    return a.at != b.at ? a.at > b.at : a.order > b.order;
  }
  static std::size_t index(std::int32_t number) { return static_cast<std::size_t>(number); }

  template <class Item>
  static std::int32_t new_of(std::vector<Item>& all, std::int32_t& free) {
    if (free == kNone) {
      all.emplace_back();
      return static_cast<std::int32_t>(all.size()) - 1;
    }
    return std::exchange(free, all[index(free)].next);
  }

  /// That of the last push with this time, as far as it is remembered, else a new one behind it:
  /// nothing is added to a moment once another one has its time.
  std::int32_t moment_at(SimTime at) {
    const auto hash = static_cast<std::uint64_t>(at.count()) * 0x9e3779b97f4a7c15U;
    std::int32_t& recent = recent_[hash >> (64 - kRecentBits)];
    if (recent != kNone && moments_[index(recent)].at == at) return recent;
    recent = new_of(moments_, free_moment_);
    moments_[index(recent)] = {.at = at};
    heap_.push_back({at, ++last_order_, recent});
    std::push_heap(heap_.begin(), heap_.end(), later);
    return recent;
  }

  static constexpr int kRecentBits = 10;
  std::vector<Node> nodes_;
  std::int32_t free_node_ = kNone;
  std::vector<Moment> moments_;
  std::int32_t free_moment_ = kNone;
  std::array<std::int32_t, 1 << kRecentBits> recent_;  ///< by a hash of the time
  std::vector<Due> heap_;
  std::uint64_t last_order_ = 0;
};

}  // namespace gossamer::sim
