#pragma once
/// Methods on a cluster: what fills in what a method's name leaves open, for simulator and model.

#include <vector>

#include "gossamer/model/max_plus.h"
#include "gossamer/sim/method.h"

namespace gossamer {

/// Of the cluster's hosts, in bytes per second; empty unless all are limited.
std::vector<double> link_rates(const ClusterSpec& cluster);

/// The links as the method can use them: DDP has its share of those between hosts, and inside a
/// host those of the devices.
ClusterSpec links_for(const MethodSpec& method, const ClusterSpec& cluster,
                      const Workload& workload);

/// What is sent in it: DDP's hook makes a number of 2 bytes of every element, and sums those.
Workload workload_for(const MethodSpec& method, const Workload& workload);

/// What the simulator and the engine run; "fitted" follows the rates of the cluster's links. Throws
/// std::invalid_argument for what cannot run on so many hosts and workers.
SimMethod sim_method(const MethodSpec& method, const ClusterSpec& cluster);

/// Whether the recursion of the model knows the method: it knows neither late = skip nor two
/// stages.
bool is_modelled(const MethodSpec& method);

/// What the recursion is told, with the overhead of frames.
MaxPlusOptions model_options(const MethodSpec& method);

}  // namespace gossamer
