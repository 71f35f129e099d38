#pragma once
/// Copies between the devices of workers and the memory of their hosts.

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

#include "gossamer/base/cluster.h"
#include "gossamer/exchange/pattern_facts.h"
#include "gossamer/model/workload.h"

namespace gossamer {

/// Seconds of a copy one way, by worker and bucket. Empty where nothing is copied: no host has a
/// device link, or DeviceCopies::none.
std::vector<double> device_copy_s(const ClusterSpec& cluster, const Workload& workload,
                                  DeviceCopies copies);

/// Note [Device copies]: every worker has one queue of copies out of its device, and one into it.
/// A copy begins when what it copies is there and the one before it in the queue is over. Where a
/// pattern needs the parameters themselves (DeviceCopies::parameters) there are no queues: both
/// copies are part of the update. Time: what adds and compares, 0 as it is made.
template <class Time>
class DeviceQueues {
 public:
  DeviceQueues() = default;
  /// Takes the times by worker and bucket.
  DeviceQueues(std::vector<Time> copies, DeviceCopies kind, std::size_t workers)
      : copies_(std::move(copies)),
        are_beside_(!copies_.empty() && kind != DeviceCopies::parameters),
        out_free_(workers),
        in_free_(workers) {}

  /// Whether there are queues.
  bool are_beside() const { return are_beside_; }
  /// What the copies add to the update of a bucket; `index` is worker · buckets + bucket.
  Time within_update(std::size_t index) const {
    return copies_.empty() || are_beside_ ? Time{} : 2 * copies_[index];
  }
  /// When a copy out that is queued at `ready` is over; at once where there are no queues.
  Time out(std::size_t worker, std::size_t index, Time ready) {
    if (!are_beside_) return ready;
    return out_free_[worker] = std::max(out_free_[worker], ready) + copies_[index];
  }
  Time in(std::size_t worker, std::size_t index, Time ready) {
    if (!are_beside_) return ready;
    return in_free_[worker] = std::max(in_free_[worker], ready) + copies_[index];
  }

 private:
  std::vector<Time> copies_;
  bool are_beside_ = false;
  std::vector<Time> out_free_;
  std::vector<Time> in_free_;
};

}  // namespace gossamer
