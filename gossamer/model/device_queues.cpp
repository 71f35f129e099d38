#include "gossamer/model/device_queues.h"

#include "gossamer/base/dtype.h"

namespace gossamer {

std::vector<double> device_copy_s(const ClusterSpec& cluster, const Workload& workload,
                                  DeviceCopies copies) {
  std::vector<double> seconds;
  if (copies == DeviceCopies::none) return seconds;
  if (std::ranges::none_of(cluster.hosts, is_limited, &HostSpec::device)) return seconds;
  for (const int host : cluster.shape().hosts_by_rank()) {
    const LinkSpec& link = cluster.hosts[static_cast<std::size_t>(host)].device;
    for (const std::int64_t elements : workload.buckets) {
      const auto bytes =
          static_cast<double>(elements) * static_cast<double>(size_of(workload.dtype));
      seconds.push_back(transfer_s(link, bytes));
    }
  }
  return seconds;
}

}  // namespace gossamer
