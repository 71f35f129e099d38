#pragma once
/// A run of virtual workers on a problem, and what is seen of it; repeated over seeds.

#include <cstdint>
#include <string>
#include <vector>

#include "gossamer/algo/pass.h"
#include "gossamer/graph/schedule.h"
#include "gossamer/lab/problem.h"

namespace gossamer {

/// α_t = first · factor^⌊t / every⌋ / (1 + t / decay), t from 0; every 0, decay 0: without that
/// part.
struct StepSize {
  double first = 0.1;
  double factor = 0.5;
  std::int64_t every = 0;
  double decay = 0;
};
double at(const StepSize& size, std::int64_t step);

struct LabOptions {
  Schedule schedule;
  std::string pattern = "atc";
  std::string optimizer = "sgd";
  Hyper hyper = {};  ///< but its lr, which is step_size
  StepSize step_size = {};
  std::int64_t steps = 1000;
  std::int64_t record_every = 100;  ///< and at the last step
  std::uint64_t seed = 1;           ///< of the samples drawn
  bool records_loss = false;        ///< f(x̄) goes over all data each time
};

/// What is seen after `step` updates, with x* the minimiser and x̄ the mean over the workers.
struct Point {
  std::int64_t step = 0;
  double error = 0;         ///< mean_i ‖x_i − x*‖², the MSE
  double mean_error = 0;    ///< ‖x̄ − x*‖²
  double disagreement = 0;  ///< mean_i ‖x_i − x̄‖²
  double loss = 0;          ///< f(x̄); 0 where it is not recorded
};

/// All start at 0. `minimiser` is the problem's, which may take long to find. Throws
/// std::invalid_argument for options that do not fit each other or the problem.
std::vector<Point> run_lab(const Problem& problem, const std::vector<double>& minimiser,
                           const LabOptions& options);

/// The same for seeds options.seed … + trials − 1, on so many threads.
std::vector<std::vector<Point>> run_trials(const Problem& problem,
                                           const std::vector<double>& minimiser,
                                           const LabOptions& options, int trials, int threads);

/// Over trials, point by point: the mean of a member and the standard error of it; 0 for one trial.
struct Curve {
  std::vector<double> step;
  std::vector<double> mean;
  std::vector<double> error;
};
Curve curve_of(const std::vector<std::vector<Point>>& trials, double Point::*member);

}  // namespace gossamer
