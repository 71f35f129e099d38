#include "gossamer/cli/topology/report.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <numeric>
#include <set>
#include <utility>

#include "gossamer/exchange/plan.h"
#include "gossamer/graph/spectra.h"

namespace gossamer {
namespace {

/// An imagined payload that divides evenly in every way a plan may cut it: by the workers of each
/// host, by the hosts of a group, and in runs of 16 elements.
std::int64_t even_payload(const HostShape& shape, const std::vector<Round>& rounds) {
  constexpr std::int64_t kEnough = std::int64_t{1} << 45;
  std::set<int> parts(shape.workers_per_host.begin(), shape.workers_per_host.end());
  std::int64_t cuts = 1;
  for (int part : parts) cuts = std::min(kEnough, std::lcm(cuts, std::int64_t{part}));
  std::int64_t shares = 1;
  for (const Round& round : rounds) {
    for (const auto& group : round.groups) {
      std::set<int> hosts;
      for (int member : group) hosts.insert(shape.host_of(member));
      shares = std::lcm(shares, static_cast<std::int64_t>(hosts.size()));
      if (shares > kEnough / cuts) return kEnough;
    }
  }
  return 16 * 1024 * cuts * shares;
}

/// Sums over all workers, in elements; divided once at the end, so that 0.5 prints as 0.5.
struct Totals {
  std::int64_t inside = 0;
  std::int64_t between = 0;
  std::int64_t messages = 0;
  std::int64_t busiest = 0;
};

Totals count_traffic(const Round& round, const HostShape& shape, std::int64_t count) {
  Totals totals;
  int worker = 0;
  for (int workers : shape.workers_per_host) {
    std::int64_t of_host = 0;
    for (int k = 0; k < workers; ++k, ++worker) {
      const Traffic sent = traffic(compile(round, shape, worker, count), shape, worker);
      totals.inside += sent.inside_host;
      totals.messages += sent.messages;
      of_host += sent.between_hosts;
    }
    totals.between += of_host;
    totals.busiest = std::max(totals.busiest, of_host);
  }
  return totals;
}

double ratio(std::int64_t elements, std::int64_t count, std::int64_t over) {
  return static_cast<double>(elements) / static_cast<double>(count) / static_cast<double>(over);
}

RoundCost cost_of(const Round& round, const HostShape& shape, const Totals& sent,
                  std::int64_t count) {
  RoundCost cost{.least_neighbours = round.workers};
  for (int worker = 0; worker < round.workers; ++worker) {
    const auto row = row_of(round, worker);
    const auto others = std::count_if(row.begin(), row.end(),
                                      [&](const Entry& entry) { return entry.worker != worker; });
    cost.least_neighbours = std::min(cost.least_neighbours, static_cast<int>(others));
    cost.most_neighbours = std::max(cost.most_neighbours, static_cast<int>(others));
  }
  cost.messages_per_worker = ratio(sent.messages, 1, round.workers);
  cost.inside_per_worker = ratio(sent.inside, count, round.workers);
  cost.between_per_worker = ratio(sent.between, count, round.workers);
  cost.between_per_host = ratio(sent.between, count, shape.hosts());
  cost.busiest_host = ratio(sent.busiest, count, 1);
  cost.rho = rho(round);
  return cost;
}

}  // namespace

TopologyReport report_on(std::string name, std::vector<std::string> modifiers, Schedule schedule) {
  TopologyReport report{.name = std::move(name), .modifiers = std::move(modifiers)};
  for (int t = 0; t < observed_rounds(schedule); ++t) {
    report.rounds.push_back(round_at(schedule, t));
  }
  const HostShape& shape = schedule.shape;
  const std::int64_t count = even_payload(shape, report.rounds);
  Totals all;
  for (const Round& round : report.rounds) {
    const Totals sent = count_traffic(round, shape, count);
    report.costs.push_back(cost_of(round, shape, sent, count));
    all.between += sent.between;
    all.messages += sent.messages;
  }
  const auto rounds = static_cast<std::int64_t>(report.rounds.size());
  report.bytes_per_host_per_step = ratio(all.between, count, rounds * shape.hosts());
  report.messages_per_worker_per_step = ratio(all.messages, 1, rounds * shape.workers());
  report.rho = mean_rho(schedule);
  report.period_contraction = period_contraction(schedule);
  report.exact_average = exact_average(schedule);
  report.schedule = std::move(schedule);
  return report;
}

std::string as_fraction(double value) {
  for (int denominator = 1; denominator <= 128; ++denominator) {
    const double numerator = value * denominator;
    if (std::abs(numerator - std::round(numerator)) > 1e-9) continue;
    const std::string whole = std::to_string(std::llround(numerator));
    return denominator == 1 ? whole : whole + "/" + std::to_string(denominator);
  }
  char text[32];
  std::snprintf(text, sizeof text, "%.4g", value);
  return text;
}

}  // namespace gossamer
