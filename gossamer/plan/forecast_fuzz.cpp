// What can be read of a cluster and a workload can be simulated, or is refused in one message.

#include "gossamer/base/cluster_file.h"
#include "gossamer/base/fuzz.h"
#include "gossamer/plan/forecast.h"
#include "gossamer/plan/workload_file.h"

namespace gossamer {
namespace forecast_fuzz {

constexpr int kMostTried = 16;
constexpr const char* kMethods[] = {"ring", "aer", "allreduce", "complete:bf16"};

}  // namespace forecast_fuzz

/// The two files with a byte 0 between them.
bool fuzz_forecast(std::span<const std::byte> bytes) {
  using namespace forecast_fuzz;
  FuzzBytes input(bytes);
  const unsigned which = input.take<std::uint8_t>() % std::size(kMethods);
  const std::string_view text = input.text();
  const std::size_t end = std::min(text.find('\0'), text.size());
  return takes([&] {
    const ClusterFile cluster = parse_cluster(text.substr(0, end), "c.toml");
    WorkloadFile workload{.workload = {.buckets = {10}, .compute = {.mean_s = 1e-3}}};
    if (end < text.size()) workload = parse_workload(text.substr(end + 1), "w.toml");
    const bool is_small = cluster.cluster.shape().workers() <= kMostTried &&
                          workload.workload.buckets.size() <= kMostTried;
    if (!is_small) return;
    forecast(cluster.cluster, workload_on(workload, cluster), parse_method(kMethods[which]),
             {.steps = 2, .warm_up = 0});
  });
}

}  // namespace gossamer
