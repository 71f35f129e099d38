#pragma once
/// Step times as a max-plus recursion: when every worker begins each step, with jitter, stragglers,
/// buckets, any schedule and unequal links.

#include <cstdint>
#include <vector>

#include "gossamer/base/cluster.h"
#include "gossamer/exchange/pattern_facts.h"
#include "gossamer/exchange/plan.h"
#include "gossamer/graph/schedule.h"
#include "gossamer/model/even_buckets.h"
#include "gossamer/model/workload.h"

namespace gossamer {

/// When a bucket is updated and its exchange launched.
enum class LaunchAt {
  step,      ///< all buckets when the backward is over, as the engine does
  backward,  ///< each when its own gradient is complete
};

/// By when what an exchange brings must be there.
enum class ResultNeeded {
  next_step,  ///< at the bucket's update in the next step: combine-while-adapt
  same_step,  ///< before the next step begins: all-reduce, adapt-then-combine
};

struct MaxPlusOptions {
  LaunchAt launch_at = LaunchAt::step;
  ResultNeeded result_needed = ResultNeeded::next_step;
  bool updates_last = false;   ///< after all exchanges: gradients are averaged, not parameters
  bool stagger = true;         ///< bucket b follows the schedule at t + b
  int payloads = 1;            ///< vectors of a bucket's size that are exchanged, as one
  bool one_at_a_time = false;  ///< a worker's exchange waits for that of the bucket before
  /// Where the hosts have a device link; see Note [Device copies].
  DeviceCopies device_copies = DeviceCopies::corrections;
  bool host_works = true;  ///< where hosts have a host_rate; see Note [Host work]
  PlanOptions plan;
  double overhead = 1;  ///< bytes on links between hosts per byte of payload: kEthernetOverhead
  int steps = 200;   ///< measured, rounded up to whole periods of the schedule if that is no more
                     ///< than twice as many
  int warm_up = 50;  ///< steps before them
};

/// Distributed data parallel as PyTorch has it: a flat ring all-reduce of the gradients, each
/// bucket as soon as its gradients are complete. For complete_schedule().
MaxPlusOptions allreduce_options();

struct StepTimes {
  /// [t][worker]: when step t begins; one row more than steps, warm-up included. Step 0 begins at
  /// 0.
  std::vector<std::vector<double>> start_s;
  int warm_up = 0;
  double mean_step_s = 0;  ///< per step after the warm-up, mean over the workers
  double compute_s = 0;    ///< the part in which workers compute or update
  double exposed_s = 0;    ///< the part in which they wait for others: the rest
  double link_s = 0;       ///< per step, what the busiest direction of a link between hosts is busy
};

/// Note [Max-plus]: worker i computes for c in step t. With φ' = φ for LaunchAt::backward and 1 for
/// LaunchAt::step its bucket b = 1 … B, with the share s_b of the elements, is updated at
///   u_b = max(u_{b−1} + (1 − φ')c s_b, f_b of the exchanges of i that this step needs) + d s_b,
///   u_0 = (begin of the step) + φ'c,
/// where d is the time of the update (all-reduce: it follows when all have arrived).
/// An exchange is ready when all its members have updated the bucket. Every host serves what it
/// sends, what it receives and what moves inside each in the order of readiness, one after the
/// other, in bytes / rate (with one_at_a_time each bucket once the one before has arrived); an
/// exchange has arrived (f) when all hosts have served it, plus the largest latency of its hosts,
/// once. next_step: step t + 1 begins at u_B and needs what was launched in step t (round t + 1;
/// round 0 is launched at time 0). same_step: step t + 1 begins when all of round t has arrived.
/// Where a host has a device link, an exchange is ready when the copies out of the devices are
/// over, and has arrived when those into them are (Note [Device copies]). The thread of a worker's
/// exchanges works between the copies and the links where a host has a host_rate (Note [Host
/// work]). Derived for this project; its σ = 0 case is step_time.h. What it leaves out: the stages
/// of a plan follow each other without gaps. Throws std::invalid_argument for what does not fit.
/// Cost per step: linear in exchanges and workers times buckets, apart from sorting the former by
/// readiness.
StepTimes step_times(const ClusterSpec& cluster, const Workload& work, const Schedule& schedule,
                     const MaxPlusOptions& options = {});

/// Seconds that the busiest direction of a link between hosts needs for the bytes of step t: what
/// no order of the exchanges can undercut, and ωγ times the compute time where hosts are alike.
double busiest_link_s(const ClusterSpec& cluster, const Workload& work, const Schedule& schedule,
                      const MaxPlusOptions& options, std::int64_t t);

}  // namespace gossamer
