#include "gossamer/sim/workload.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>

#include "gossamer/base/errors.h"

namespace gossamer {
namespace {

void check_number(std::string_view what, double value, double most) {
  if (value >= 0 && value <= most) return;
  fail_argument({.place = "sim", .what = what, .got = std::to_string(value)});
}

std::int64_t elements_of(const SimWorkload& workload) {
  return std::accumulate(workload.buckets.begin(), workload.buckets.end(), std::int64_t{0});
}

constexpr double kLongest_s = 1e6;  // keeps all times of a run far from the clock's end

}  // namespace

std::vector<std::int64_t> even_buckets(std::int64_t elements, int buckets) {
  if (elements < 0 || buckets < 1) {
    fail_argument({.place = "sim",
                   .what = "there must be elements ≥ 0 and at least one bucket",
                   .got = std::to_string(elements) + " in " + std::to_string(buckets)});
  }
  std::vector<std::int64_t> sizes;
  for (int b = 0; b < buckets; ++b) {
    sizes.push_back(elements * (b + 1) / buckets - elements * b / buckets);
  }
  return sizes;
}

void check_workload(const SimWorkload& workload, int workers) {
  if (workload.buckets.empty() || std::ranges::min(workload.buckets) < 0) {
    fail_argument({.place = "sim",
                   .what = "a workload needs at least one bucket, and no negative ones",
                   .got = std::to_string(workload.buckets.size()) + " buckets",
                   .remedy = "see even_buckets()"});
  }
  check_number("compute_s must be in [0, 1e6]", workload.compute_s, kLongest_s);
  check_number("update_s must be in [0, 1e6]", workload.update_s, kLongest_s);
  check_number("forward_share must be in [0, 1]", workload.forward_share, 1);
  check_number("sigma must be in [0, 10]", workload.sigma, 10);
  for (double factor : workload.factors) check_number("factors must be in [0, 1e6]", factor, 1e6);
  const auto fits = [&](std::size_t size) { return size == static_cast<std::size_t>(workers); };
  if (!workload.factors.empty() && !fits(workload.factors.size())) {
    fail_argument({.place = "sim",
                   .what = "factors must be as many as workers, " + std::to_string(workers),
                   .got = std::to_string(workload.factors.size())});
  }
  if (workload.compute != ComputeKind::trace) return;
  const auto is_empty = [](const auto& steps) { return steps.empty(); };
  if (!fits(workload.trace_s.size()) || std::ranges::any_of(workload.trace_s, is_empty)) {
    fail_argument({.place = "sim",
                   .what = "trace_s must have the seconds of at least one step for each of " +
                           std::to_string(workers) + " workers",
                   .got = std::to_string(workload.trace_s.size()) + " workers"});
  }
  for (const auto& steps : workload.trace_s) {
    for (double seconds : steps) check_number("trace_s must be in [0, 1e6]", seconds, kLongest_s);
  }
}

ComputeTimes::ComputeTimes(const SimWorkload& workload, int worker, std::uint64_t seed)
    : workload_(&workload),
      worker_(static_cast<std::size_t>(worker)),
      mean_s_(workload.compute_s),
      log_sigma_(std::sqrt(std::log1p(workload.sigma * workload.sigma))),
      rng_(seed, static_cast<std::uint64_t>(worker)) {
  if (!workload.factors.empty()) mean_s_ *= workload.factors[worker_];
}

SimTime ComputeTimes::next() {
  const std::size_t step = step_++;
  const SimWorkload& workload = *workload_;
  switch (workload.compute) {
    case ComputeKind::constant:
      return nearest_ns(mean_s_);
    case ComputeKind::normal:
      return nearest_ns(mean_s_ * std::max(0.0, 1 + workload.sigma * rng_.normal()));
    case ComputeKind::lognormal:
      return nearest_ns(mean_s_ * std::exp(log_sigma_ * (rng_.normal() - log_sigma_ / 2)));
    case ComputeKind::trace: {
      const std::vector<double>& steps = workload.trace_s[worker_];
      const double factor = workload.factors.empty() ? 1 : workload.factors[worker_];
      return nearest_ns(steps[step % steps.size()] * factor);
    }
  }
  __builtin_unreachable();
}

ComputeMoments moments_of(const SimWorkload& workload, SimTime compute) {
  ComputeMoments moments;
  const auto total = static_cast<double>(compute.count());
  moments.forward = SimTime(std::llround(total * workload.forward_share));
  const auto rest = static_cast<double>((compute - moments.forward).count());
  const auto elements = static_cast<double>(std::max<std::int64_t>(1, elements_of(workload)));
  std::int64_t done = 0;
  for (std::int64_t size : workload.buckets) {
    done += size;
    const double share = static_cast<double>(done) / elements;
    moments.backward.push_back(moments.forward + SimTime(std::llround(rest * share)));
  }
  moments.backward.back() = compute;
  return moments;
}

SimTime update_time(const SimWorkload& workload, std::size_t bucket) {
  const auto elements = static_cast<double>(std::max<std::int64_t>(1, elements_of(workload)));
  return nearest_ns(workload.update_s * static_cast<double>(workload.buckets[bucket]) / elements);
}

}  // namespace gossamer
