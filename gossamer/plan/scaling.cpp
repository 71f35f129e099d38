#include "gossamer/plan/scaling.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "gossamer/base/units.h"
#include "gossamer/plan/forecast.h"

namespace gossamer {
namespace {

std::string three_digits(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.3g", value);
  return text;
}

/// Vectors of a worker's size that an optimizer keeps.
int state_vectors(const std::string& optimizer) {
  if (optimizer.find("adam") != std::string::npos) return 2;
  return optimizer == "sgd" || optimizer == "none" ? 0 : 1;
}

}  // namespace

Scaling scaling_of(const ClusterSpec& cluster, const Workload& workload, const Ranking& ranking) {
  const HostSpec& host = cluster.hosts.front();
  const ClusterSpec alone{.hosts = {host}};
  Workload its_own = workload;
  ComputeTimes& compute = its_own.compute;
  const auto workers = static_cast<std::size_t>(host.workers);
  if (!compute.factors.empty()) compute.factors.resize(workers);
  if (compute.trace.size() > 1) compute.trace.resize(workers);
  const MethodSpec ddp = parse_method("ddp");
  Scaling scaling{.workers = host.workers, .step_s = forecast(alone, its_own, ddp).step_s};
  const double more = static_cast<double>(cluster.shape().workers()) / host.workers;
  const auto over = [&](const RankedCandidate& c) { return more * scaling.step_s / c.step_s; };
  scaling.recommended = over(ranking.candidates[ranking.recommended]);
  const auto found = std::ranges::find(ranking.candidates, ddp, &RankedCandidate::candidate);
  scaling.ddp = over(*found);
  return scaling;
}

std::string words_of(const Scaling& scaling, const Ranking& ranking, int hosts) {
  const std::string name = name_of(ranking.candidates[ranking.recommended].candidate);
  std::string text = "One host alone (" + std::to_string(scaling.workers) +
                     (scaling.workers == 1 ? " worker" : " workers") + ") takes " +
                     format_duration(scaling.step_s) + " per step. All " + std::to_string(hosts) +
                     " hosts train " + three_digits(scaling.recommended) +
                     " times its samples per second with " + name;
  if (name != "ddp") text += ", " + three_digits(scaling.ddp) + " times with ddp";
  text += ".";
  if (scaling.recommended <= 1) text += " More hosts do not pay.";
  return text;
}

Footprint footprint_of(const MethodSpec& method, const std::string& optimizer, double bytes) {
  Footprint footprint{.checkpoint = bytes * (1 + state_vectors(optimizer))};
  if (facts_of(method).is_ddp) return footprint;
  footprint.device = bytes;
  footprint.pinned = bytes * (averages_gradients(method) ? 2 : 3);
  return footprint;
}

}  // namespace gossamer
