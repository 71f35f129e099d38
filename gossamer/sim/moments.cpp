#include "gossamer/sim/moments.h"

#include <algorithm>
#include <cmath>

namespace gossamer {

ComputeMoments moments_of(const Workload& workload, SimTime compute) {
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

SimTime update_time(const Workload& workload, std::size_t bucket) {
  return nearest_ns(workload.update_s * share_of(workload, bucket));
}

}  // namespace gossamer
