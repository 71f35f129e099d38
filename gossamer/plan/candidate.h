#pragma once
/// Candidates: the ways to train that are compared, and their names.

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "gossamer/model/max_plus.h"
#include "gossamer/sim/method.h"

namespace gossamer {

/// One way to train. `method` is "ddp", "allreduce" or a topology by its full name.
struct Candidate {
  std::string method;
  Codec codec = Codec::fp32;
  int local_steps = 1;      ///< mixes in every H-th step only
  int global_average = 0;   ///< everybody averages in every H-th step; 0: never
  int degree = 1;           ///< base_k: neighbours per round
  int gradient_rounds = 0;  ///< pattern gradient_gossip with so many rounds per step; 0: cwa
  SimUpdate update = SimUpdate::step;
  SimLate late = SimLate::wait;
  std::int64_t staleness = 1;
  bool operator==(const Candidate&) const = default;
};

/// Reads "aer", "aer:bf16", "base_k:degree=2", "ring:local=4:average=48", "one_peer_ring:skip" (or
/// skip=2), "ring:backward",
/// "aer:int8:gradients=4": a method, then what differs from the defaults. Throws
/// std::invalid_argument for an unknown word and for what does not go together: averages of
/// gradients have no schedule.
Candidate parse_candidate(std::string_view text);

/// The text that parse_candidate() takes, the shortest one.
std::string name_of(const Candidate& candidate);

/// Whether gradients are averaged over everybody in every step: ddp and allreduce.
bool averages_gradients(const Candidate& candidate);

/// The schedule of a candidate; of one that averages gradients the average over all. `link_rates`
/// of the hosts, in any unit, are for "fitted"; empty where they are equal or have no limit. Throws
/// std::invalid_argument where the topology cannot serve so many hosts and workers.
Schedule schedule_of(const Candidate& candidate, const HostShape& shape,
                     std::span<const double> link_rates);

/// Of the cluster's hosts, in bytes per second; empty unless all are limited.
std::vector<double> link_rates(const ClusterSpec& cluster);

/// The links as the candidate can use them: those of DDP are slower by the workload's share.
ClusterSpec links_for(const Candidate& candidate, const ClusterSpec& cluster,
                      const Workload& workload);

/// What the simulator and the engine run; "fitted" follows the rates of the cluster's links. Throws
/// std::invalid_argument where the topology cannot serve so many hosts and workers.
SimMethod sim_method(const Candidate& candidate, const ClusterSpec& cluster);

/// The same for the recursion of the model, which knows neither late = skip nor gradient_gossip.
/// `overhead` is that of frames.
MaxPlusOptions model_options(const Candidate& candidate);

}  // namespace gossamer
