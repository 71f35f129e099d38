#pragma once
/// What exchanges cost the host's processor: copying, coding and adding by one thread per worker.

#include <span>
#include <utility>
#include <vector>

#include "gossamer/base/cluster.h"
#include "gossamer/base/dtype.h"
#include "gossamer/exchange/plan.h"

namespace gossamer {

/// Note [Host work]: one thread does a worker's exchanges, one thing after the other: it codes and
/// sends, receives, decodes and adds. HostSpec::host_rate_bytes_per_s is the rate of parameters
/// that it exchanges in fp32 with one worker of another host: it sends a byte, receives one, and
/// adds the two. Everything else is counted in such bytes. A byte that crosses TCP is 0.37 each
/// way, and one that a sum or a mix reads or writes 0.087 (docs/results/transport.md: 3.3 GB/s both
/// ways, which leaves 27 GB/s for the sum). An element that is coded as int8 is 2, and 1 where it
/// is decoded: all-reduce with int8 on an H200 is fitted by these (docs/results/devices.md). bf16
/// is a pass over memory. What is inside a host is read in place, so that only its sum counts.
/// Where no device holds the parameters the pass of the update mixes, and the rate is unlimited
/// unless it is given.
struct HostWork {
  double before = 0;  ///< sending: until the payload is on its way
  double after = 0;   ///< from the first arrival on
  HostWork& operator+=(const HostWork& more);
};

/// What a plan is for.
struct HostWorkOptions {
  DType dtype = DType::f32;
  /// The averages are what arrives, as of gradients; else the thread makes corrections of them.
  bool finished_averages = false;
};

/// Of a worker's plan, in those bytes; `host_of` by rank.
HostWork host_work(const Plan& plan, std::span<const int> host_of, int worker,
                   const HostWorkOptions& options);

/// Bytes per second by worker; empty where no host has a limit.
std::vector<double> host_rates(const ClusterSpec& cluster);

/// When a thread that does one thing at a time has done it. Things are asked for in any order: each
/// takes the time that is left after those that were asked for before.
class BusyThread {
 public:
  /// The end of what begins at `ready` at the earliest and takes so long.
  double take(double ready, double seconds);
  /// Nothing will be asked for at an earlier time.
  void forget_before(double time);

 private:
  std::vector<std::pair<double, double>> busy_;  ///< from, to; in order and apart
};

}  // namespace gossamer
