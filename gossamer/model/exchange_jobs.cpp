#include "gossamer/model/exchange_jobs.h"

#include <algorithm>

namespace gossamer {

std::vector<ExchangeJob> exchange_jobs(const Round& round, const ClusterSpec& cluster,
                                       const ExchangedPayload& payload, double overhead) {
  std::vector<ExchangeJob> jobs;
  for (ExchangeLoad& load : exchange_loads(round, cluster.shape(), payload)) {
    ExchangeJob job{.members = std::move(load.members), .stations = {}};
    const bool crosses = load.hosts.size() > 1;
    for (const HostLoad& bytes : load.hosts) {
      const HostSpec& host = cluster.hosts[static_cast<std::size_t>(bytes.host)];
      const LinkSpec& link = crosses ? host.link : host.inside;
      job.latency_s = std::max(job.latency_s, link.latency_s);
      const auto add = [&](int which, std::int64_t moved, double rate, double factor) {
        if (moved == 0) return;
        job.stations.push_back(
            {kStationsPerHost * bytes.host + which, factor * static_cast<double>(moved) / rate});
      };
      add(0, bytes.sent_bytes, host.link.rate_bytes_per_s, overhead);
      add(1, bytes.received_bytes, host.link.rate_bytes_per_s, overhead);
      add(2, bytes.inside_bytes, host.inside.rate_bytes_per_s, 1);
    }
    jobs.push_back(std::move(job));
  }
  return jobs;
}

JobTable::JobTable(const ClusterSpec& cluster, const Schedule& schedule, ExchangedPayload payload,
                   double overhead)
    : cluster_(cluster), schedule_(schedule), payload_(payload), overhead_(overhead) {}

const std::vector<ExchangeJob>& JobTable::at(std::int64_t t, std::int64_t elements) {
  const std::int64_t round = schedule_.period > 0 ? t % schedule_.period : t;
  const auto [found, is_new] = jobs_.try_emplace({round, elements});
  if (is_new) {
    payload_.elements = elements;
    found->second = exchange_jobs(round_at(schedule_, round), cluster_, payload_, overhead_);
  }
  return found->second;
}

void JobTable::forget_before(std::int64_t t) {
  if (schedule_.period == 0) jobs_.erase(jobs_.begin(), jobs_.lower_bound({t, 0}));
}

}  // namespace gossamer
