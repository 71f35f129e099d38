#include "gossamer/model/compute_times.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "gossamer/base/errors.h"
#include "gossamer/base/rng.h"

namespace gossamer {
namespace {

void check_seconds(double value, std::string_view what) {
  if (value >= 0 && std::isfinite(value)) return;
  fail_argument({.place = "compute times", .what = what, .got = std::to_string(value)});
}

void check_rows(std::size_t rows, int workers, std::string_view what) {
  if (rows == static_cast<std::size_t>(workers)) return;
  fail_argument({.place = "compute times",
                 .what = what,
                 .got = std::to_string(rows),
                 .remedy = "give " + std::to_string(workers) + ", one per worker"});
}

double standard_normal(const ComputeTimes& times, int worker, std::int64_t t) {
  const std::uint64_t own_seed = mix_bits(times.seed, static_cast<std::uint64_t>(worker));
  return Rng(own_seed, static_cast<std::uint64_t>(t)).normal();
}

double unscaled_s(const ComputeTimes& times, int worker, std::int64_t t) {
  switch (times.jitter) {
    case Jitter::constant:
      return times.mean_s;
    case Jitter::normal:
      return std::max(0.0, times.mean_s + times.deviation_s * standard_normal(times, worker, t));
    case Jitter::lognormal: {
      // exp(μ + sz) has mean exp(μ + s²/2) and variance (exp(s²) − 1) mean².
      const double variance = std::log1p(std::pow(times.deviation_s / times.mean_s, 2));
      return times.mean_s *
             std::exp(std::sqrt(variance) * standard_normal(times, worker, t) - variance / 2);
    }
    case Jitter::trace: {
      const std::size_t row = times.trace.size() == 1 ? 0 : static_cast<std::size_t>(worker);
      const std::vector<double>& recorded = times.trace[row];
      return recorded[static_cast<std::size_t>(t) % recorded.size()];
    }
  }
  __builtin_unreachable();
}

}  // namespace

void check_compute_times(const ComputeTimes& times, int workers) {
  check_seconds(times.mean_s, "the mean must be finite and not negative");
  check_seconds(times.deviation_s, "the deviation must be finite and not negative");
  if (times.jitter == Jitter::lognormal && times.mean_s == 0) {
    fail_argument({.place = "compute times", .what = "a lognormal time has a positive mean"});
  }
  if (!times.factors.empty()) {
    check_rows(times.factors.size(), workers, "wrong number of factors");
  }
  for (double factor : times.factors) check_seconds(factor, "a factor must not be negative");
  if (times.jitter != Jitter::trace) return;
  if (times.trace.size() != 1) check_rows(times.trace.size(), workers, "wrong number of traces");
  for (const std::vector<double>& row : times.trace) {
    if (row.empty()) fail_argument({.place = "compute times", .what = "a trace has no steps"});
    for (double seconds : row) check_seconds(seconds, "a time must be finite and not negative");
  }
}

double compute_s(const ComputeTimes& times, int worker, std::int64_t t) {
  const double factor = times.factors.empty() ? 1 : times.factors[static_cast<std::size_t>(worker)];
  return factor * unscaled_s(times, worker, t);
}

double drawn_more_s(const ComputeTimes& times, int workers, std::int64_t from, std::int64_t to) {
  if (times.jitter == Jitter::constant || times.jitter == Jitter::trace || from >= to) return 0;
  ComputeTimes usual = times;
  usual.jitter = Jitter::constant;
  double more = 0;
  for (int w = 0; w < workers; ++w) {
    const double mean_s = compute_s(usual, w, 0);
    for (std::int64_t t = from; t < to; ++t) more += compute_s(times, w, t) - mean_s;
  }
  return more / (static_cast<double>(workers) * static_cast<double>(to - from));
}

}  // namespace gossamer
