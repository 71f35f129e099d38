// 1 − ρ against n, computed from W, beside the closed forms.
#include <cmath>
#include <functional>
#include <numbers>

#include "gossamer/graph/spectra.h"
#include "gossamer/lab/figures/figure_parts.h"

namespace gossamer {
namespace {

struct Law {
  const char* topology;
  const char* formula;
  double (*value)(double n);
};

constexpr double kPi = std::numbers::pi;
constexpr Law kLaws[] = {
    {"exponential", "2/(τ + 1), τ = ⌈log₂ n⌉",
     [](double n) { return 2 / (std::ceil(std::log2(n)) + 1); }},
    {"torus", "(2/5)(1 − cos(2π/√n)) ≈ 7.9/n",
     [](double n) { return 0.4 * (1 - std::cos(2 * kPi / std::sqrt(n))); }},
    {"grid", "≈ 2/n", [](double n) { return 2 / n; }},
    {"star", "1/n", [](double n) { return 1 / n; }},
    {"ring", "(2/3)(1 − cos(2π/n)) ≈ 13.16/n²",
     [](double n) { return 2. / 3 * (1 - std::cos(2 * kPi / n)); }},
};

}  // namespace

Figure spectral_gaps(const FigureOptions&) {
  Figure figure{.text =
                    "Points are 1 − ρ, ρ = ‖W − J‖₂, of the mixing matrices; dashed lines are the "
                    "closed forms. The more it shrinks with n, the longer decentralized SGD takes "
                    "to keep up with parallel SGD.",
                .header = {"topology", "closed form", "n", "1 − ρ", "closed form / 1 − ρ"}};
  Chart chart{.title = "Spectral gap",
              .x = {.label = "workers n", .log = true},
              .y = {.label = "1 − ρ", .log = true}};
  for (const Law& law : kLaws) {
    Series points{.name = law.topology, .points = true};
    Series line{.name = law.formula, .dashed = true, .like = law.topology};
    for (int side : {2, 3, 4, 6, 8, 12, 16, 24, 32}) {
      const int n = side * side;
      points.x.push_back(n);
      points.y.push_back(1 - rho(round_at(topology_of(law.topology, n), 0)));
      line.x.push_back(n);
      line.y.push_back(law.value(n));
      if (side == 8 || side == 32) {
        figure.rows.push_back({law.topology, law.formula, std::to_string(n),
                               three_digits(points.y.back()),
                               three_digits(line.y.back() / points.y.back())});
      }
    }
    chart.series.push_back(points);
    chart.series.push_back(line);
  }
  figure.charts = {chart};
  return figure;
}

}  // namespace gossamer
