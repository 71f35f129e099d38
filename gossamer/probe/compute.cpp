#include "gossamer/probe/compute.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "gossamer/base/errors.h"

namespace gossamer {
namespace {

constexpr double kAlike = 0.03;
constexpr double kStandardErrors = 3;

enum Figure { kCount, kForward, kBackward, kUpdate, kSquares, kFigures };
using Figures = std::array<double, kFigures>;

/// Sums over a worker's steps; kSquares: of the distances from its mean.
Figures sums_of(const std::vector<TimedStep>& steps) {
  Figures sums{};
  for (const TimedStep& step : steps) {
    sums[kCount] += 1;
    sums[kForward] += step.forward_s;
    sums[kBackward] += step.backward_s;
    sums[kUpdate] += step.update_s;
  }
  const double mean = (sums[kForward] + sums[kBackward]) / std::max(1.0, sums[kCount]);
  for (const TimedStep& step : steps) {
    sums[kSquares] += std::pow(step.forward_s + step.backward_s - mean, 2);
  }
  return sums;
}

std::vector<Figures> gather(Collectives& collectives, const Figures& own) {
  const auto n = static_cast<std::size_t>(collectives.workers());
  std::vector<double> flat(n * kFigures, 0);
  for (std::size_t k = 0; k < kFigures; ++k) {
    flat[static_cast<std::size_t>(collectives.rank()) * kFigures + k] =
        own[k] * static_cast<double>(n);
  }
  collectives.mean(flat);
  std::vector<Figures> all(n);
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t k = 0; k < kFigures; ++k) all[i][k] = flat[i * kFigures + k];
  }
  return all;
}

double mean_compute_s(const Figures& sums) {
  return (sums[kForward] + sums[kBackward]) / sums[kCount];
}

std::vector<double> speeds_of(const std::vector<Figures>& all, const HostShape& shape,
                              double mean_s, double deviation_s) {
  std::vector<double> speeds(all.size(), 1);
  for (int host = 0; host < shape.hosts(); ++host) {
    const int count = shape.workers_per_host[static_cast<std::size_t>(host)];
    const auto first = static_cast<std::size_t>(shape.first_rank(host));
    double own_s = 0;
    double steps = 0;
    for (std::size_t i = first; i < first + static_cast<std::size_t>(count); ++i) {
      own_s += mean_compute_s(all[i]) / count;
      steps += all[i][kCount];
    }
    const double noise_s = kStandardErrors * deviation_s / std::sqrt(steps);
    if (std::abs(own_s - mean_s) <= std::max(kAlike * mean_s, noise_s)) continue;
    std::fill_n(speeds.begin() + static_cast<std::ptrdiff_t>(first), count, mean_s / own_s);
  }
  return speeds;
}

}  // namespace

ProbedCompute merge_steps(Collectives& collectives, const std::vector<TimedStep>& steps) {
  const std::vector<Figures> all = gather(collectives, sums_of(steps));
  Figures total{};
  double mean_s = 0;
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (all[i][kCount] < 1) {
      fail_argument({.place = "probe",
                     .what = "every worker must have timed steps",
                     .got = "none of worker " + std::to_string(i)});
    }
    for (std::size_t k = 0; k < kFigures; ++k) total[k] += all[i][k];
    mean_s += mean_compute_s(all[i]) / static_cast<double>(all.size());
  }
  const double freedom = total[kCount] - static_cast<double>(all.size());
  const double deviation_s = freedom > 0 ? std::sqrt(total[kSquares] / freedom) : 0;
  const double compute_s = total[kForward] + total[kBackward];
  return {.times = {.jitter = deviation_s > 0 ? Jitter::normal : Jitter::constant,
                    .mean_s = mean_s,
                    .deviation_s = deviation_s},
          .forward_share = compute_s > 0 ? total[kForward] / compute_s : 0,
          .update_s = total[kUpdate] / total[kCount],
          .speeds = speeds_of(all, collectives.shape(), mean_s, deviation_s)};
}

}  // namespace gossamer
