#include "gossamer/plan/forecast.h"

#include <algorithm>
#include <limits>

namespace gossamer {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

SimTime end_of(const SimResult& result) {
  SimTime end{0};
  for (const auto& steps : result.steps) {
    if (!steps.empty()) end = std::max(end, steps.back().end);
  }
  return end;
}

double busiest_link(const ClusterSpec& cluster, const SimResult& result) {
  const double seconds = to_seconds(end_of(result));
  double most = 0;
  for (std::size_t h = 0; h < cluster.hosts.size() && seconds > 0; ++h) {
    const LinkTraffic& traffic = result.traffic[h];
    const auto bytes = std::max(traffic.sent_wire_bytes, traffic.received_wire_bytes);
    const double rate = cluster.hosts[h].link.rate_bytes_per_s;
    most = std::max(most, static_cast<double>(bytes) / rate / seconds);
  }
  return std::min(most, 1.0);
}

}  // namespace

Forecast forecast(const ClusterSpec& cluster, const Workload& workload, const MethodSpec& candidate,
                  const ForecastOptions& options) {
  const ClusterSpec links = links_for(candidate, cluster, workload);
  const Workload sent = workload_for(candidate, workload);
  const SimMethod method = sim_method(candidate, cluster);
  Forecast forecast{.candidate = candidate};
  forecast.result = simulate(links, sent, method,
                             {.steps = options.warm_up + options.steps,
                              .link_changes = options.link_changes,
                              .losses = options.losses,
                              .record_messages = options.record,
                              .record_timeline = options.record});
  forecast.step_s = mean_step_s(forecast.result, options.warm_up);
  forecast.exposed_s = mean_waited_s(forecast.result, options.warm_up);
  forecast.compute_s = forecast.step_s - forecast.exposed_s;
  const bool is_stuck = !forecast.result.waits_for.empty();
  forecast.link_busy = is_stuck ? kNaN : busiest_link(cluster, forecast.result);
  forecast.bytes_per_host = sent_bytes_per_step(forecast.result);
  forecast.model_s = kNaN;
  if (is_modelled(candidate) && options.link_changes.empty() && options.losses.empty()) {
    MaxPlusOptions model = model_options(candidate);
    model.steps = static_cast<int>(options.steps);
    model.warm_up = static_cast<int>(options.warm_up);
    forecast.model_s = step_times(links, sent, method.schedule, model).mean_step_s;
  }
  return forecast;
}

double ddp_allreduce_s(const ClusterSpec& cluster, std::int64_t elements) {
  const Workload workload{.buckets = {elements}, .compute = {.mean_s = 0}};
  return forecast(cluster, workload, parse_method("ddp"), {.steps = 1, .warm_up = 1}).step_s;
}

double ddp_link_share(const ClusterSpec& cluster, std::int64_t elements, double seconds) {
  return std::clamp(ddp_allreduce_s(cluster, elements) / seconds, 0.001, 1.0);
}

}  // namespace gossamer
