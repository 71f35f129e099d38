#include "gossamer/plan/needs.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "gossamer/model/link_load.h"
#include "gossamer/model/max_plus.h"

namespace gossamer {
namespace {

constexpr const char* kAskedMethods[] = {"allreduce", "aer", "complete:local=4"};
constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kStride = 8;      // of the search for a bracket
constexpr double kFarthest = 1e9;  // of the rate that is given
constexpr int kHalvings = 10;      // leave a fifth of a percent

ClusterSpec scaled(ClusterSpec cluster, double factor) {
  for (HostSpec& host : cluster.hosts) host.link.rate_bytes_per_s *= factor;
  return cluster;
}

double slowest_link(const ClusterSpec& cluster) {
  double least = kInfinity;
  for (const HostSpec& host : cluster.hosts) least = std::min(least, host.link.rate_bytes_per_s);
  return least;
}

/// Of the host that has most to do, in its busier direction.
double most_bytes(const std::vector<MeanLoad>& loads) {
  double most = 0;
  for (const MeanLoad& load : loads) most = std::max({most, load.sent_bytes, load.received_bytes});
  return most;
}

class Method {
 public:
  Method(const ClusterSpec& cluster, const Workload& workload, const MethodSpec& candidate)
      : cluster_(cluster),
        workload_(workload),
        schedule_(sim_method(candidate, cluster).schedule),
        options_(model_options(candidate)) {
    options_.steps = 24;
    options_.warm_up = 8;
  }

  StepTimes times(double factor) const {
    return step_times(scaled(cluster_, factor), workload_, schedule_, options_);
  }

  std::vector<MeanLoad> loads() const {
    return mean_loads(
        schedule_, schedule_.period,
        {.elements = elements_of(workload_), .dtype = workload_.dtype, .plan = options_.plan});
  }

  /// The least factor of the links' rates that is enough.
  double enough() const {
    const double most_s = kEnough * times(kInfinity).mean_step_s;
    const auto is_enough = [&](double factor) { return times(factor).mean_step_s <= most_s; };
    double low = 1;
    double high = 1;
    if (is_enough(1)) {
      while (low > 1 / kFarthest && is_enough(low /= kStride)) high = low;
    } else {
      while (high < kFarthest && !is_enough(high *= kStride)) low = high;
      if (!is_enough(high)) return kInfinity;
    }
    for (int k = 0; k < kHalvings; ++k) {
      const double middle = std::sqrt(low * high);
      (is_enough(middle) ? high : low) = middle;
    }
    return high;
  }

 private:
  const ClusterSpec& cluster_;
  const Workload& workload_;
  Schedule schedule_;
  MaxPlusOptions options_;
};

}  // namespace

std::vector<Need> needs_of(const ClusterSpec& cluster, const Workload& workload) {
  check_cluster(cluster);
  check_workload(workload, cluster.shape().workers());
  std::vector<Need> needs;
  const double slowest = slowest_link(cluster);
  if (cluster.hosts.size() < 2 || std::isinf(slowest)) return needs;
  for (const char* name : kAskedMethods) {
    for (Codec codec : kAllCodecs) {
      MethodSpec candidate = parse_method(name);
      candidate.codec = codec;
      const Method method(cluster, workload, candidate);
      const StepTimes times = method.times(1);
      const std::vector<MeanLoad> loads = method.loads();
      const double link_s = busiest_link_s(cluster, loads) * kEthernetOverhead;
      needs.push_back({.candidate = candidate,
                       .sent_bytes = most_bytes(loads),
                       .over_compute = link_s / workload.compute.mean_s,
                       .step_s = times.mean_step_s,
                       .exposed_s = times.exposed_s,
                       .enough_bytes_per_s = slowest * method.enough()});
    }
  }
  return needs;
}

}  // namespace gossamer
