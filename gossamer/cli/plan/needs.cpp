#include "gossamer/cli/plan/needs.h"

#include <algorithm>
#include <cmath>

#include "gossamer/base/units.h"
#include "gossamer/cli/text_table.h"

namespace gossamer {
namespace {

constexpr const char* kNeedsRow = "  %-23s %10s %13s %10s %8s %14s\n";

std::string three_digits(double value) {
  return std::isfinite(value) ? formatted("%.3g", value) : "-";
}

}  // namespace

std::string needs_table(const std::vector<Need>& needs, bool knows_gpu) {
  if (needs.empty()) return "";
  std::string text = "what methods ask of these links:\n";
  text +=
      formatted(kNeedsRow, "method", "sent/host", "link/compute", "step", "exposed", "enough from");
  for (const Need& need : needs) {
    const double exposed = need.step_s > 0 ? need.exposed_s / need.step_s : 0;
    text += formatted(
        kNeedsRow, name_of(need.candidate).c_str(), format_bytes(need.sent_bytes).c_str(),
        three_digits(need.over_compute).c_str(), format_duration(need.step_s).c_str(),
        formatted("%.0f %%", 100 * exposed).c_str(),
        std::isinf(need.enough_bytes_per_s) ? "none"
                                            : format_rate(need.enough_bytes_per_s).c_str());
  }
  text += "link/compute: time of the bytes over compute time";
  const double gamma = needs.front().over_compute;
  if (std::isfinite(gamma)) text += ", gamma = " + three_digits(gamma) + " for all-reduce in fp32";
  text += ".\n";
  if (knows_gpu) {
    text +=
        "It hangs on tokens per worker, GPU and link: more parameters compute and send more "
        "alike.\n";
  }
  text += formatted(
      "exposed: the share of a step in which workers wait. enough from: the rate of links from\n"
      "which on a step takes at most %.0f %% longer than on links without a limit.\n",
      100 * (kEnough - 1));
  return text;
}

Json needs_json(const std::vector<Need>& needs) {
  Json json = Json::array();
  for (const Need& need : needs) {
    json.push_back({{"method", name_of(need.candidate)},
                    {"sent_bytes", need.sent_bytes},
                    {"link_over_compute", finite_json(need.over_compute)},
                    {"step_s", need.step_s},
                    {"exposed_s", need.exposed_s},
                    {"enough_bytes_per_s", finite_json(need.enough_bytes_per_s)}});
  }
  return json;
}

}  // namespace gossamer
