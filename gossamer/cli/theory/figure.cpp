#include "gossamer/cli/theory/figure.h"

#include <cmath>

#include "gossamer/base/units.h"

namespace gossamer {

SpeedUpCurves speed_up_curves(const Schedule& schedule, JitterCase c,
                              const std::vector<double>& omegas,
                              const std::vector<double>& sigmas) {
  constexpr int kPoints = 33;
  SpeedUpCurves result;
  for (int k = 0; k < kPoints; ++k) {
    result.gamma.push_back(std::pow(10, 2.0 * k / (kPoints - 1) - 1));
  }
  for (const double sigma : sigmas) {
    for (const double omega : omegas) {
      SpeedUpCurve curve{.omega = omega, .sigma = sigma, .speed_up = {}};
      c.sigma = sigma;
      c.ratios.omega = omega;
      for (const double gamma : result.gamma) {
        c.ratios.gamma = gamma;
        curve.speed_up.push_back(speed_up_with_jitter(schedule, c));
      }
      result.curves.push_back(curve);
    }
  }
  return result;
}

Figure speed_up_figure(const std::string& title, const SpeedUpCurves& curves) {
  Figure figure{.name = "speedup", .title = title};
  double sigma = -1;
  for (const SpeedUpCurve& curve : curves.curves) {
    if (curve.sigma != sigma) {
      sigma = curve.sigma;
      figure.charts.push_back({.title = "σ = " + shortest(sigma),
                               .x = {.label = "γ: all-reduce communication / compute", .log = true},
                               .y = {.label = "speed-up in %"}});
    }
    Series series{.name = "ω = " + shortest(curve.omega), .x = curves.gamma};
    for (const double value : curve.speed_up) series.y.push_back(100 * value);
    figure.charts.back().series.push_back(series);
  }
  return figure;
}

}  // namespace gossamer
