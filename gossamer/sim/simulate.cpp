#include "gossamer/sim/simulate.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

#include "gossamer/base/errors.h"
#include "gossamer/sim/worker_states.h"

namespace gossamer {
namespace {

void check_options(const SimOptions& options, const HostShape& shape) {
  const auto check_time = [](double at_s) {
    check_argument("sim", at_s >= 0 && at_s <= 1e9, "a time must be in [0, 1e9] s",
                   std::to_string(at_s));
  };
  check_argument("sim", options.steps >= 0, "steps must not be negative",
                 std::to_string(options.steps));
  const Framing& framing = options.framing;
  check_argument(
      "sim",
      framing.payload_bytes >= 1 && framing.frame_bytes >= framing.payload_bytes &&
          framing.message_bytes >= 0,
      "frames must carry a payload and be at least as long as it",
      std::to_string(framing.payload_bytes) + " of " + std::to_string(framing.frame_bytes));
  check_time(framing.message_s);
  for (const LinkChange& change : options.link_changes) {
    check_time(change.at_s);
    check_argument("sim", change.host >= 0 && change.host < shape.hosts(),
                   "a link that changes must be of a host that exists",
                   std::to_string(change.host));
    check_argument("sim", change.factor >= 0 && std::isfinite(change.factor),
                   "the factor of a link must be finite and not negative",
                   std::to_string(change.factor));
  }
  for (const WorkerLoss& loss : options.losses) {
    check_time(loss.at_s);
    check_argument("sim", loss.worker >= 0 && loss.worker < shape.workers(),
                   "a worker that is lost must exist", std::to_string(loss.worker));
  }
}

/// Mean over workers of `total(steps from warm_up on)` per step.
template <class Total>
double mean_of(const SimResult& result, std::int64_t warm_up, Total total) {
  double sum = 0;
  int counted = 0;
  for (const std::vector<SimStep>& steps : result.steps) {
    if (static_cast<std::int64_t>(steps.size()) <= warm_up) continue;
    const auto from = steps.begin() + warm_up;
    sum += to_seconds(total(from, steps.end())) / static_cast<double>(steps.end() - from);
    ++counted;
  }
  return counted > 0 ? sum / counted : std::numeric_limits<double>::quiet_NaN();
}

}  // namespace

SimResult simulate(const ClusterSpec& cluster, const Workload& workload, const SimMethod& method,
                   const SimOptions& options) {
  check_cluster(cluster);
  const HostShape shape = cluster.shape();
  check_workload(workload, shape.workers());
  check_method(method, shape);
  check_options(options, shape);

  SimResult result;
  sim::WorkerStates workers(cluster, workload, method, options, result);
  sim::Events& events = workers.events();
  sim::Network& network = workers.network();
  const auto plan = [&](double at_s, sim::Event::Kind kind, std::size_t who) {
    events.push(nearest_ns(at_s), {.kind = kind, .who = static_cast<std::int32_t>(who)});
  };
  for (std::size_t k = 0; k < options.link_changes.size(); ++k) {
    plan(options.link_changes[k].at_s, sim::Event::Kind::link_changed, k);
  }
  for (const WorkerLoss& loss : options.losses) {
    plan(loss.at_s, sim::Event::Kind::lost, static_cast<std::size_t>(loss.worker));
  }
  workers.start();
  SimTime now{0};
  for (;;) {
    // Rates are worked out once per moment, whatever happens in it.
    const bool moment_is_over = events.empty() || events.next_time() > now;
    if (moment_is_over && network.is_unsettled()) {
      network.settle(now);
      continue;
    }
    if (events.empty()) break;
    const auto next = events.pop();
    now = next.at;
    workers.handle(now, next.event);
  }
  workers.finish();
  return result;
}

double mean_step_s(const SimResult& result, std::int64_t warm_up) {
  return mean_of(result, warm_up, [](auto from, auto to) { return (to - 1)->end - from->begin; });
}

double mean_waited_s(const SimResult& result, std::int64_t warm_up) {
  return mean_of(result, warm_up, [](auto from, auto to) {
    SimTime sum{0};
    for (; from != to; ++from) sum += from->waited;
    return sum;
  });
}

std::vector<double> sent_bytes_per_step(const SimResult& result) {
  std::size_t steps = 1;
  for (const auto& each : result.steps) steps = std::max(steps, each.size());
  std::vector<double> bytes;
  for (const LinkTraffic& traffic : result.traffic) {
    bytes.push_back(static_cast<double>(traffic.sent_bytes) / static_cast<double>(steps));
  }
  return bytes;
}

}  // namespace gossamer
