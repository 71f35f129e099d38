#include "gossamer/model/workload.h"

#include <algorithm>
#include <numeric>
#include <string>

#include "gossamer/base/errors.h"

namespace gossamer {
namespace {

void check_number(std::string_view what, double value, double most) {
  if (value >= 0 && value <= most) return;
  fail_argument({.place = "workload", .what = what, .got = std::to_string(value)});
}

constexpr double kLongest_s = 1e6;  // keeps all times of a run far from the clock's end

}  // namespace

void check_workload(const Workload& workload, int workers) {
  if (workload.buckets.empty() || std::ranges::min(workload.buckets) < 0) {
    fail_argument({.place = "workload",
                   .what = "there must be at least one bucket, and no negative ones",
                   .got = std::to_string(workload.buckets.size()) + " buckets",
                   .remedy = "see even_buckets()"});
  }
  const ComputeTimes& compute = workload.compute;
  check_compute_times(compute, workers);
  check_number("the mean compute time must be in [0, 1e6] s", compute.mean_s, kLongest_s);
  check_number("the deviation of compute times must be in [0, 10] times their mean",
               compute.deviation_s, 10 * compute.mean_s);
  check_number("the time of the update must be in [0, 1e6] s", workload.update_s, kLongest_s);
  check_number("the forward share must be in [0, 1]", workload.forward_share, 1);
  check_number("the share of the links for DDP must be in (0, 1]", workload.ddp_link_share, 1);
  check_number("the share of the links for DDP must be in (0, 1]", 1 / workload.ddp_link_share,
               1e3);
  for (double factor : compute.factors) check_number("factors must be in [0, 1e6]", factor, 1e6);
  for (const auto& steps : compute.trace) {
    for (double s : steps) check_number("a trace's times must be in [0, 1e6] s", s, kLongest_s);
  }
}

std::int64_t elements_of(const Workload& workload) {
  return std::accumulate(workload.buckets.begin(), workload.buckets.end(), std::int64_t{0});
}

double share_of(const Workload& workload, std::size_t bucket) {
  const std::int64_t all = elements_of(workload);
  if (all == 0) return 1 / static_cast<double>(workload.buckets.size());
  return static_cast<double>(workload.buckets[bucket]) / static_cast<double>(all);
}

}  // namespace gossamer
