#pragma once
/// The figure of the runtime model: speed-up over γ for several ω and σ.

#include <string>
#include <vector>

#include "gossamer/chart/chart.h"
#include "gossamer/model/published_fit.h"

namespace gossamer {

/// 1 − T_D/T_AR at each γ.
struct SpeedUpCurve {
  double omega = 1;
  double sigma = 0;
  std::vector<double> speed_up;
};

struct SpeedUpCurves {
  std::vector<double> gamma;
  std::vector<SpeedUpCurve> curves;
};

/// By the recursion, γ from .1 to 10. `c` says all but γ, ω and σ.
SpeedUpCurves speed_up_curves(const Schedule& schedule, JitterCase c,
                              const std::vector<double>& omegas, const std::vector<double>& sigmas);

/// A panel for each σ, a line for each ω.
Figure speed_up_figure(const std::string& title, const SpeedUpCurves& curves);

}  // namespace gossamer
