#include "gossamer/base/json.h"

#include "gossamer/cli/topology/report.h"

namespace gossamer {
namespace {

Json edges_of(const Round& round) {
  Json edges = Json::array();
  for (int i = 0; i < round.workers; ++i) {
    for (const Entry& entry : row_of(round, i)) edges.push_back({i, entry.worker, entry.weight});
  }
  return edges;
}

}  // namespace

std::string to_json(const TopologyReport& report) {
  const Schedule& schedule = report.schedule;
  Json head;
  head["name"] = report.name;
  head["modifiers"] = report.modifiers;
  head["workers"] = schedule.shape.workers();
  head["hosts"] = schedule.shape.hosts();
  head["workers_per_host"] = schedule.shape.workers_per_host;
  head["period"] = schedule.period;
  if (averages(schedule)) {
    head["rho"] = report.rho;
    head["period_contraction"] = report.period_contraction;
    head["exact_average"] = report.exact_average;
  }
  head["bytes_per_host_per_step"] = report.bytes_per_host_per_step;
  head["messages_per_worker_per_step"] = report.messages_per_worker_per_step;
  std::string text = "{\n";
  for (const auto& [key, value] : head.items()) {
    text += "  " + Json(key).dump() + ": " + value.dump() + ",\n";
  }
  text += "  \"rounds\": [\n";
  for (std::size_t t = 0; t < report.rounds.size(); ++t) {
    const char* end = t + 1 < report.rounds.size() ? ",\n" : "\n";
    text += "    " + Json{{"edges", edges_of(report.rounds[t])}}.dump() + end;
  }
  return text + "  ]\n}\n";
}

}  // namespace gossamer
