#pragma once
/// simulate(): what a run does on a cluster, step by step, without running it.

#include <cstdint>
#include <string>
#include <vector>

#include "gossamer/base/cluster.h"
#include "gossamer/base/timeline.h"
#include "gossamer/sim/exchanges.h"
#include "gossamer/sim/method.h"
#include "gossamer/sim/moments.h"
#include "gossamer/sim/network.h"

namespace gossamer {

/// From `at_s` on the link of a host has `factor` ≥ 0 times its rate, in both directions.
struct LinkChange {
  double at_s = 0;
  int host = 0;
  double factor = 1;
};

/// The worker is gone from `at_s` on: it computes, sends and takes nothing any more.
struct WorkerLoss {
  double at_s = 0;
  int worker = 0;
};

struct SimOptions {
  std::int64_t steps = 50;
  Framing framing;
  std::vector<LinkChange> link_changes = {};
  std::vector<WorkerLoss> losses = {};
  bool record_messages = false;
  bool record_timeline = false;
  /// Groups of more workers are followed as a whole, without `messages`; see Note [Crowds].
  int largest_group = 64;
};

/// One step of one worker; it begins when the one before ends.
struct SimStep {
  SimTime begin{0};
  SimTime end{0};
  SimTime waited{0};  ///< in which it did nothing but wait for others: exposed communication
  bool operator==(const SimStep&) const = default;
};

struct SimResult {
  std::vector<std::vector<SimStep>> steps;  ///< by worker; those it has finished
  std::vector<LinkTraffic> traffic;         ///< by host
  std::vector<TimelineMessage> messages;    ///< by arrival; where asked for
  std::vector<TimelineEvent> timeline;      ///< where asked for; an exchange is from launch to end
  std::int64_t skipped = 0;                 ///< late = skip: payloads that updates went without
  /// Empty, unless workers can never finish: who waits for whom.
  std::vector<WaitsFor> waits_for;
  bool operator==(const SimResult&) const = default;
};

/// Runs the Plans of a method. Equal arguments give equal results, to the nanosecond. Throws
/// std::invalid_argument for what does not fit together. Cost: about 1 µs per event, of which a
/// message has three and a step at least one, and a host of a crowd three per leg; memory: 24 bytes
/// per step of a worker, and Plans of one period.
SimResult simulate(const ClusterSpec& cluster, const Workload& workload, const SimMethod& method,
                   const SimOptions& options = {});

/// Mean over the workers of the time of a step, beginning after `warm_up` steps. Workers that did
/// not get further do not count; NaN if none did.
double mean_step_s(const SimResult& result, std::int64_t warm_up = 0);
/// The same of the time that a step waited.
double mean_waited_s(const SimResult& result, std::int64_t warm_up = 0);
/// By host, the bytes that it sent to others, over the steps of the worker that got furthest.
std::vector<double> sent_bytes_per_step(const SimResult& result);

}  // namespace gossamer
