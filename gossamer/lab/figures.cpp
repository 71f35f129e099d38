#include "gossamer/lab/figures.h"

#include <algorithm>
#include <vector>

#include "gossamer/base/errors.h"
#include "gossamer/lab/figures/figure_parts.h"

namespace gossamer {
namespace {

constexpr FigureRow kFigures[] = {
    {"spectral_gaps", "Spectral gaps of ring, star, grid, torus and exponential graphs",
     spectral_gaps},
    {"exact_averaging", "Exact averages in finitely many rounds", exact_averaging},
    {"transient_stage", "The transient stage of D-SGD on rings", transient_stage},
    {"dmsgd_topologies", "DmSGD over topologies of 32 workers", dmsgd_topologies},
    {"one_peer_exponential", "Static against one-peer exponential graphs", one_peer_exponential},
    {"corrections_logistic", "Corrections for unequal data: logistic regression",
     corrections_logistic},
    {"corrections_least_squares", "Corrections for unequal data: least squares",
     corrections_least_squares},
    {"global_averages", "Periodic and adaptive global averages on cycles", global_averages},
    {"stationary_errors", "What constant step sizes leave, in closed form", stationary_errors},
    {"step_size_limits", "The largest stable step sizes", step_size_limits},
    {"accum_adam", "AccumAdam against Adam with small batches", accum_adam},
    {"digits", "Corrections for unequal data: images dealt by class", digits, true},
};

}  // namespace

std::span<const FigureRow> figures() { return kFigures; }

const FigureRow& find_figure(std::string_view name) {
  const auto found = std::ranges::find(kFigures, name, &FigureRow::name);
  if (found != std::end(kFigures)) return *found;
  std::vector<std::string_view> names;
  for (const FigureRow& row : kFigures) names.push_back(row.name);
  fail_unknown_name("lab figure", "figure", name, names);
}

Figure make_figure(const FigureRow& row, const FigureOptions& options) {
  Figure figure = row.make(options);
  figure.name = row.name;
  figure.title = row.summary;
  return figure;
}

}  // namespace gossamer
