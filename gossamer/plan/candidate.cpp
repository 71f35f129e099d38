#include "gossamer/plan/candidate.h"

#include <cmath>

#include "gossamer/model/link_load.h"

namespace gossamer {

std::vector<double> link_rates(const ClusterSpec& cluster) {
  std::vector<double> rates;
  for (const HostSpec& host : cluster.hosts) {
    if (std::isinf(host.link.rate_bytes_per_s)) return {};
    rates.push_back(host.link.rate_bytes_per_s);
  }
  return rates;
}

ClusterSpec links_for(const MethodSpec& method, const ClusterSpec& cluster,
                      const Workload& workload) {
  ClusterSpec result = cluster;
  if (!facts_of(method).is_ddp) return result;
  for (HostSpec& host : result.hosts) {
    host.link.rate_bytes_per_s *= workload.ddp_link_share;
    if (is_limited(host.device_inside)) host.inside = host.device_inside;
  }
  return result;
}

Workload workload_for(const MethodSpec& method, const Workload& workload) {
  Workload sent = workload;
  if (!facts_of(method).is_ddp || method.codec == Codec::fp32) return sent;
  const auto each = static_cast<std::int64_t>(size_of(workload.dtype));
  for (std::int64_t& elements : sent.buckets) elements = (2 * elements + each - 1) / each;
  return sent;
}

SimMethod sim_method(const MethodSpec& method, const ClusterSpec& cluster) {
  MethodSpec on_cluster = method;
  if (method.schedule.topology == "fitted" && method.schedule.link_rates.empty()) {
    on_cluster.schedule.link_rates = link_rates(cluster);
  }
  return sim_method(on_cluster, cluster.shape());
}

bool is_modelled(const MethodSpec& method) {
  return method.late == Late::wait && facts_of(method).stages() == 1;
}

MaxPlusOptions model_options(const MethodSpec& method) {
  const PatternFacts& pattern = facts_of(method);
  const bool is_ahead = pattern.launch == Launch::after_previous_update;
  return {
      .launch_at = update_of(method) == UpdateAt::backward ? LaunchAt::backward : LaunchAt::step,
      .result_needed = is_ahead ? ResultNeeded::next_step : ResultNeeded::same_step,
      .updates_last = pattern.launch == Launch::before_update,
      .stagger = method.stagger && pattern.rounds == Rounds::schedule,
      .payloads = static_cast<int>(pattern.payloads.size()),
      .one_at_a_time = pattern.is_ddp,
      .device_copies = device_copies(pattern, method.late),
      .host_works = !pattern.is_ddp,
      .plan = plan_options(method),
      .overhead = kEthernetOverhead};
}

}  // namespace gossamer
