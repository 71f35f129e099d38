#pragma once
/// What the figures have in common: their data, their names, their makers.

#include <memory>
#include <string>
#include <vector>

#include "gossamer/lab/comparison.h"
#include "gossamer/lab/figures.h"

namespace gossamer {

/// One worker per host.
HostShape alone_on_hosts(int workers);

/// The topology's schedule for so many workers, one per host.
Schedule topology_of(const std::string& name, int workers);

/// The logistic regression of the figures, d = 10, 2000 samples per worker, one drawn per step,
/// each worker's data its own. The lecture does not say how its data were made: variance,
/// heterogeneity, norm and seed were chosen so that the ratios between methods come close to those
/// published.
SyntheticSpec logistic_spec(int workers);

Repeats repeats_of(const FigureOptions& options, int trials);

/// The ring's step sizes of the lecture: .2, halved every 1000 steps.
inline constexpr StepSize kHalved = {.first = 0.2, .factor = 0.5, .every = 1000};

Figure spectral_gaps(const FigureOptions& options);
Figure exact_averaging(const FigureOptions& options);
Figure transient_stage(const FigureOptions& options);
Figure dmsgd_topologies(const FigureOptions& options);
Figure one_peer_exponential(const FigureOptions& options);
Figure corrections_logistic(const FigureOptions& options);
Figure corrections_least_squares(const FigureOptions& options);
Figure global_averages(const FigureOptions& options);
Figure stationary_errors(const FigureOptions& options);
Figure step_size_limits(const FigureOptions& options);
Figure accum_adam(const FigureOptions& options);
Figure digits(const FigureOptions& options);

}  // namespace gossamer
