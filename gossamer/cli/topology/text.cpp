#include <algorithm>
#include <cstdio>
#include <map>

#include "gossamer/base/index.h"
#include "gossamer/cli/topology/report.h"
#include "gossamer/recipe/host_shape.h"

namespace gossamer {
namespace {

constexpr std::size_t kMostRounds = 40;

std::string number(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.4g", value);
  return text;
}

std::string range_of(int least, int most) {
  return least == most ? std::to_string(most) : std::to_string(least) + "-" + std::to_string(most);
}

/// "2 groups of 4, 4 of 2" or "24 edges".
std::string shape_of(const Round& round) {
  std::map<std::size_t, int, std::greater<>> groups;
  for (const auto& group : round.groups) ++groups[group.size()];
  std::string text;
  for (const auto& [size, count] : groups) {
    if (size == 1) {
      text += (text.empty() ? "" : ", ") + std::to_string(count) + " alone";
      continue;
    }
    const std::string word = count == 1 ? "group of " : "groups of ";
    text += (text.empty() ? "" : ", ") + std::to_string(count) + " " + word + std::to_string(size);
  }
  if (is_partition(round)) return text;
  std::size_t edges = 0;
  for (int i = 0; i < round.workers; ++i) {
    for (const Entry& entry : round.rows[at(i)]) edges += entry.worker != i;
  }
  return edges == 0 ? "everybody alone" : std::to_string(edges) + " weights";
}

std::string line(const std::string& label, const std::string& value) {
  return "  " + label + std::string(16 - label.size(), ' ') + value + "\n";
}

std::string title(const TopologyReport& report, bool bold) {
  std::string text = report.name;
  for (const std::string& modifier : report.modifiers) text += " + " + modifier;
  const int workers = report.schedule.shape.workers();
  return (bold ? "\033[1m" + text + "\033[0m" : text) + "  " + describe(report.schedule.shape) +
         " = " + std::to_string(workers) + (workers == 1 ? " worker\n\n" : " workers\n\n");
}

std::string summary(const TopologyReport& report) {
  const std::size_t rounds = report.rounds.size();
  const bool repeats = report.schedule.period > 0;
  const std::string over = (repeats ? "" : "the first ") +
                           (rounds == 1 ? "1 round" : std::to_string(rounds) + " rounds");
  std::string text;
  text += line("period", repeats ? over : "none, a new graph per step (below: " + over + ")");
  if (averages(report.schedule)) {
    text += line("exact average", report.exact_average ? "yes, after " + over : "no");
    text += line("contraction", number(report.period_contraction) + " over " + over +
                                    " (what is left of a disagreement, at worst)");
    text += line("rho", number(report.rho) + (rounds == 1 ? " = |W - J|" : " of the mean round") +
                            ", 1 - rho = " + number(1 - report.rho));
  } else {
    const bool by_column = report.schedule.stochasticity == Stochasticity::column;
    text += line("weights", by_column
                                ? "columns of W sum to 1, rows need not: for pattern push_sum only"
                                : "rows of W sum to 1, columns need not: no pattern follows it");
  }
  text += line("between hosts",
               number(report.bytes_per_host_per_step) + " payloads per host and step (mean)");
  text +=
      line("messages", number(report.messages_per_worker_per_step) + " per worker and step (mean)");
  return text;
}

using Row = std::vector<std::string>;

std::vector<Row> cells(const TopologyReport& report) {
  std::vector<Row> rows{{"round", "averages", "neighbours", "messages", "inside", "between", "mean",
                         "busiest", "rho"}};
  for (std::size_t t = 0; t < std::min(kMostRounds, report.rounds.size()); ++t) {
    const RoundCost& cost = report.costs[t];
    rows.push_back({std::to_string(t), shape_of(report.rounds[t]),
                    range_of(cost.least_neighbours, cost.most_neighbours),
                    number(cost.messages_per_worker), number(cost.inside_per_worker),
                    number(cost.between_per_worker), number(cost.between_per_host),
                    number(cost.busiest_host), averages(report.schedule) ? number(cost.rho) : "-"});
  }
  return rows;
}

std::string pad(const std::string& text, std::size_t width, bool left) {
  const std::string space(width - text.size(), ' ');
  return left ? text + space : space + text;
}

}  // namespace

std::string to_text(const TopologyReport& report, bool bold) {
  const std::vector<Row> rows = cells(report);
  std::vector<std::size_t> widths(rows.front().size(), 0);
  for (const Row& row : rows) {
    for (std::size_t c = 0; c < row.size(); ++c) widths[c] = std::max(widths[c], row[c].size());
  }
  std::string text = title(report, bold) + summary(report) + "\n";
  // Columns 3 to 5 are per worker, 6 and 7 per host; a payload is all parameters once.
  std::size_t start = 2;
  for (std::size_t c = 0; c < 3; ++c) start += widths[c] + 2;
  const std::size_t per_worker = widths[3] + widths[4] + widths[5] + 6;
  text += std::string(start, ' ') + pad("per worker, payloads", per_worker, true) +
          "per host, payloads\n";
  for (const Row& row : rows) {
    text += "  ";
    for (std::size_t c = 0; c < row.size(); ++c) {
      text += pad(row[c], widths[c], c == 1) + (c + 1 < row.size() ? "  " : "\n");
    }
  }
  if (report.rounds.size() > kMostRounds) {
    text += "  ... " + std::to_string(report.rounds.size() - kMostRounds) +
            " more rounds; --json has them all\n";
  }
  return text;
}

}  // namespace gossamer
