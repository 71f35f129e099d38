// What is left of a disagreement after k rounds of graphs that change from round to round.
#include <algorithm>
#include <cmath>

#include "gossamer/graph/algebra.h"
#include "gossamer/graph/spectra.h"
#include "gossamer/graph/topology.h"
#include "gossamer/lab/figures/figure_parts.h"

namespace gossamer {
namespace {

constexpr int kRounds = 12;
constexpr double kExact = 1e-16;  // where an exact average is drawn

/// W_{k−1} … W_0 for k = 0 … kRounds.
std::vector<Round> products(const Schedule& schedule) {
  std::vector<Round> all = {identity_round(schedule.shape.workers())};
  for (int k = 0; k < kRounds; ++k) all.push_back(product(round_at(schedule, k), all.back()));
  return all;
}

Series residual(const std::string& name, const std::vector<Round>& after) {
  Series series{.name = name};
  for (std::size_t k = 0; k < after.size(); ++k) {
    series.x.push_back(static_cast<double>(k));
    series.y.push_back(std::max(rho(after[k]), kExact));
  }
  return series;
}

/// How far the weight that a worker gets at most, or at least, is from 1/n.
double largest_entry_error(const Round& total) {
  double largest = 0;
  for (int i = 0; i < total.workers; ++i) {
    const std::vector<Entry> row = row_of(total, i);
    const bool is_full = std::ssize(row) == total.workers;
    if (!is_full) largest = std::max(largest, 1. / total.workers);
    for (const Entry& entry : row) {
      largest = std::max(largest, std::abs(entry.weight - 1. / total.workers));
    }
  }
  return largest;
}

std::string rounds_to_exact(const Series& series) {
  const auto found = std::ranges::find_if(series.y, [](double y) { return y <= 1e-13; });
  if (found == series.y.end()) return "never";
  return std::to_string(found - series.y.begin());
}

}  // namespace

Figure exact_averaging(const FigureOptions&) {
  Figure figure{
      .text =
          "‖W_k … W_1 − J‖₂ after k rounds. One-peer exponential graphs end with the exact average "
          "after τ = ⌈log₂ n⌉ rounds if n is a power of two, and only then; base-(k+1) graphs do "
          "for "
          "every n. An exact average is drawn at 10⁻¹⁶.",
      .header = {"topology", "n", "‖W_τ … W_1 − J‖₂", "its largest entry",
                 "rounds to the exact average"}};
  Chart chart{.title = "Exact averaging",
              .x = {.label = "rounds k"},
              .y = {.label = "what is left of a disagreement, at worst", .log = true}};
  for (const char* topology : {"one_peer_exponential", "base_k"}) {
    for (int n : {16, 6, 12}) {
      const Schedule schedule = topology_of(topology, n);
      const std::string name = std::string(topology) + ", n = " + std::to_string(n);
      const std::vector<Round> after = products(schedule);
      const Series series = residual(name, after);
      const auto tau = static_cast<std::size_t>(n == 6 ? 3 : 4);
      const bool is_exact = series.y[tau] <= 1e-13;
      figure.rows.push_back({topology, std::to_string(n),
                             is_exact ? "0" : three_digits(series.y[tau]),
                             is_exact ? "0" : three_digits(largest_entry_error(after[tau])),
                             rounds_to_exact(series)});
      chart.series.push_back(series);
    }
  }
  figure.charts = {chart};
  return figure;
}

}  // namespace gossamer
