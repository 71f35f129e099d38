#pragma once
/// How long workers compute in each step: constant, with jitter, or as recorded.

#include <cstdint>
#include <vector>

namespace gossamer {

/// How compute times vary from step to step, independently of each other.
enum class Jitter {
  constant,
  normal,     ///< cut off at 0
  lognormal,  ///< never below 0, with a longer tail
  trace,      ///< as recorded, over and over
};

/// Compute times (forward, backward and update) of all workers in all steps. A plain value: equal
/// values give equal times, on every machine.
struct ComputeTimes {
  Jitter jitter = Jitter::constant;
  double mean_s = 1;
  double deviation_s = 0;  ///< standard deviation of normal and lognormal
  std::uint64_t seed = 0;
  std::vector<double> factors;             ///< by worker, on top of the rest; empty: all 1
  std::vector<std::vector<double>> trace;  ///< seconds by worker and step; one row serves all
};

/// Throws std::invalid_argument unless the times are finite and not negative, and factors and trace
/// are for this number of workers.
void check_compute_times(const ComputeTimes& times, int workers);

/// Seconds that `worker` computes in step t ≥ 0, a pure function of its arguments.
double compute_s(const ComputeTimes& times, int worker, std::int64_t t);

/// By how much the mean of what all workers compute in steps [from, to) is above mean_s and its
/// factors; 0 where times do not vary or are recorded.
double drawn_more_s(const ComputeTimes& times, int workers, std::int64_t from, std::int64_t to);

}  // namespace gossamer
