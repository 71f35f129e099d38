#include "gossamer/model/exchange_jobs.h"

#include <algorithm>
#include <cmath>

#include "gossamer/base/index.h"

namespace gossamer {

Stations::Stations(const HostShape& shape) : links_(2 * shape.hosts()), count_(links_) {
  for (const int workers : shape.workers_per_host) {
    first_rank_.push_back(static_cast<int>(row_.size()));
    for (int k = 0; k < workers; ++k) {
      row_.push_back(count_);
      count_ += workers;
    }
  }
}

int Stations::way(const ExchangeLoad& load, int host) const {
  const int first_rank = first_rank_[static_cast<std::size_t>(host)];
  const auto first = std::ranges::lower_bound(load.members, first_rank);
  const bool is_backwards = load.sender == first[1];
  const int from = is_backwards ? first[1] : first[0];
  const int to = is_backwards ? first[0] : first[1];
  return row_[static_cast<std::size_t>(from)] + to - first_rank;
}

namespace {

template <class T>
std::span<const T> part_of(const std::vector<T>& all, const std::vector<ExchangeJob>& jobs,
                           std::size_t job, std::uint32_t ExchangeJob::*end) {
  const std::size_t begin = job == 0 ? 0 : jobs[job - 1].*end;
  return {all.data() + begin, all.data() + jobs[job].*end};
}

}  // namespace

std::span<const int> RoundJobs::members_of(std::size_t job) const {
  return part_of(members, jobs, job, &ExchangeJob::members_end);
}

std::span<const StationTime> RoundJobs::links_of(std::size_t job) const {
  return part_of(links, jobs, job, &ExchangeJob::links_end);
}

std::span<const StationTime> RoundJobs::pairs_of(std::size_t job) const {
  return part_of(pairs, jobs, job, &ExchangeJob::pairs_end);
}

namespace {

/// By worker. Members of a group that are on one host have about as much to do as the first.
std::vector<HostWork> host_works(const Round& round, const HostShape& shape,
                                 const ExchangedPayload& payload) {
  const std::vector<int> host_of = shape.hosts_by_rank();
  const bool is_grouped = is_partition(round);
  std::vector<HostWork> works(host_of.size());
  const auto work_of = [&](int worker) {
    const Plan plan = compile(round, shape, worker, payload.elements, payload.plan);
    return host_work(plan, host_of, worker, {payload.dtype, payload.plan.finished_averages});
  };
  for (int w = 0; w < round.workers && !is_grouped; ++w) {
    works[static_cast<std::size_t>(w)] = work_of(w);
  }
  for (const std::vector<int>& group : round.groups) {
    HostWork work;
    for (std::size_t k = 0; k < group.size() && group.size() > 1; ++k) {
      const auto member = static_cast<std::size_t>(group[k]);
      const bool is_first = k == 0 || host_of[member] != host_of[at(group[k - 1])];
      if (is_first) work = work_of(group[k]);
      works[member] = work;
    }
  }
  return works;
}

}  // namespace

RoundJobs round_jobs(const Round& round, const ClusterSpec& cluster, const Stations& stations,
                     const ExchangedPayload& payload, double overhead) {
  RoundJobs made;
  for (const ExchangeLoad& load : exchange_loads(round, cluster.shape(), payload)) {
    ExchangeJob job;
    double link_latency_s = 0;
    LinkSpec inside;  // the slowest of the hosts
    for (const HostLoad& bytes : load.hosts) {
      const HostSpec& host = cluster.hosts[static_cast<std::size_t>(bytes.host)];
      link_latency_s = std::max(link_latency_s, host.link.latency_s);
      const auto add = [&](int station, std::int64_t moved) {
        if (moved == 0) return;
        const double seconds = overhead * static_cast<double>(moved) / host.link.rate_bytes_per_s;
        made.links.push_back({station, seconds});
        job.link_s = std::max(job.link_s, seconds);
      };
      add(stations.egress(bytes.host), bytes.sent_bytes);
      add(stations.ingress(bytes.host), bytes.received_bytes);
      if (bytes.inside_bytes == 0) continue;
      inside.latency_s = std::max(inside.latency_s, host.inside.latency_s);
      inside.rate_bytes_per_s = std::min(inside.rate_bytes_per_s, host.inside.rate_bytes_per_s);
      made.pairs.push_back(
          {stations.way(load, bytes.host),
           static_cast<double>(load.path.pair_bytes) / host.inside.rate_bytes_per_s});
    }
    job.inside_s = static_cast<double>(load.path.inside_bytes) / inside.rate_bytes_per_s;
    if (load.path.inside_bytes == 0) job.link_s = 0;  // all of it goes on beside what is inside
    job.latency_s =
        load.path.link_phases * link_latency_s + load.path.inside_phases * inside.latency_s;
    made.members.insert(made.members.end(), load.members.begin(), load.members.end());
    job.members_end = static_cast<std::uint32_t>(made.members.size());
    job.links_end = static_cast<std::uint32_t>(made.links.size());
    job.pairs_end = static_cast<std::uint32_t>(made.pairs.size());
    made.jobs.push_back(job);
  }
  const bool is_limited = std::ranges::any_of(cluster.hosts, [](const HostSpec& host) {
    return std::isfinite(host.host_rate_bytes_per_s);
  });
  if (is_limited) made.work = host_works(round, cluster.shape(), payload);
  return made;
}

JobTable::JobTable(const ClusterSpec& cluster, const Schedule& schedule, ExchangedPayload payload,
                   double overhead)
    : cluster_(cluster),
      stations_(cluster.shape()),
      schedule_(schedule),
      payload_(payload),
      overhead_(overhead) {}

const RoundJobs& JobTable::at(std::int64_t t, std::int64_t elements) {
  const std::int64_t round = schedule_.period > 0 ? t % schedule_.period : t;
  const auto [found, is_new] = jobs_.try_emplace({round, elements});
  if (is_new) {
    payload_.elements = elements;
    found->second =
        round_jobs(round_at(schedule_, round), cluster_, stations_, payload_, overhead_);
  }
  return found->second;
}

void JobTable::forget_before(std::int64_t t) {
  if (schedule_.period == 0) jobs_.erase(jobs_.begin(), jobs_.lower_bound({t, 0}));
}

}  // namespace gossamer
