#include "gossamer/model/link_load.h"

#include <algorithm>
#include <map>

#include "gossamer/base/errors.h"
#include "gossamer/exchange/group_legs.h"

namespace gossamer {
namespace {

/// The loads of a group that has these many members on each of its hosts, by index of the host.
ExchangeLoad load_of_group(const std::vector<int>& members, const ExchangedPayload& payload) {
  ExchangeLoad load{.members = {}, .hosts = std::vector<HostLoad>(members.size())};
  for (const Leg& leg : group_legs(members, payload.elements, payload.dtype, payload.plan)) {
    HostLeg most;
    for (std::size_t h = 0; h < leg.size(); ++h) {
      load.hosts[h].sent_bytes += leg[h].sent_bytes;
      load.hosts[h].received_bytes += leg[h].received_bytes;
      load.hosts[h].inside_bytes += leg[h].inside_bytes;
      most.link_phases = std::max(most.link_phases, leg[h].link_phases);
      most.inside_phases = std::max(most.inside_phases, leg[h].inside_phases);
      most.longest_bytes = std::max(most.longest_bytes, leg[h].longest_bytes);
    }
    load.path.link_phases += most.link_phases;
    load.path.pair_bytes += most.longest_bytes;
    if (most.link_phases > 0) continue;  // what is inside goes on beside it
    load.path.inside_phases += most.inside_phases;
    load.path.inside_bytes += most.longest_bytes;
  }
  return load;
}

class GroupLoads {
 public:
  GroupLoads(const HostShape& shape, const ExchangedPayload& payload)
      : host_of_(shape.hosts_by_rank()), payload_(payload) {}

  ExchangeLoad of(const std::vector<int>& group) {
    std::vector<int> hosts;
    std::vector<int> members_by_host;
    for (int member : group) {
      const int host = host_of_[static_cast<std::size_t>(member)];
      if (hosts.empty() || hosts.back() != host) {
        hosts.push_back(host);
        members_by_host.push_back(0);
      }
      ++members_by_host.back();
    }
    const auto [found, is_new] = known_.try_emplace(members_by_host);
    if (is_new) found->second = load_of_group(members_by_host, payload_);
    ExchangeLoad load = found->second;
    load.members = group;
    for (std::size_t k = 0; k < hosts.size(); ++k) load.hosts[k].host = hosts[k];
    return load;
  }

 private:
  std::vector<int> host_of_;
  const ExchangedPayload& payload_;
  std::map<std::vector<int>, ExchangeLoad> known_;
};

/// The payload of `sender` on its way to `receiver`: whole, and coded only between hosts.
ExchangeLoad load_of_edge(int sender, int receiver, const std::vector<int>& host_of,
                          const ExchangedPayload& payload) {
  const int from = host_of[static_cast<std::size_t>(sender)];
  const int to = host_of[static_cast<std::size_t>(receiver)];
  const auto bytes = static_cast<std::int64_t>(
      coded_bytes(from == to ? Codec::fp32 : payload.plan.codec, payload.elements, payload.dtype));
  ExchangeLoad load{.members = {std::min(sender, receiver), std::max(sender, receiver)},
                    .sender = sender,
                    .hosts = {}};
  if (from == to) {
    load.hosts = {{.host = from, .inside_bytes = bytes}};
    load.path = {.inside_phases = 1, .inside_bytes = bytes, .pair_bytes = bytes};
  } else {
    load.path = {.link_phases = 1};
    load.hosts = {{.host = from, .sent_bytes = bytes}, {.host = to, .received_bytes = bytes}};
    if (to < from) std::swap(load.hosts[0], load.hosts[1]);
  }
  return load;
}

}  // namespace

std::vector<ExchangeLoad> exchange_loads(const Round& round, const HostShape& shape,
                                         const ExchangedPayload& payload) {
  if (round.workers != shape.workers()) {
    fail_argument({.place = "link load",
                   .what = "the round is for another number of workers",
                   .got = std::to_string(round.workers),
                   .remedy = "the hosts have " + std::to_string(shape.workers())});
  }
  std::vector<ExchangeLoad> loads;
  if (is_partition(round)) {
    GroupLoads groups(shape, payload);
    for (const std::vector<int>& group : round.groups) {
      if (group.size() > 1) loads.push_back(groups.of(group));
    }
    return loads;
  }
  const std::vector<int> host_of = shape.hosts_by_rank();
  for (int receiver = 0; receiver < round.workers; ++receiver) {
    for (const Entry& entry : round.rows[static_cast<std::size_t>(receiver)]) {
      if (entry.worker == receiver) continue;
      loads.push_back(load_of_edge(entry.worker, receiver, host_of, payload));
    }
  }
  return loads;
}

std::vector<HostLoad> host_loads(const Round& round, const HostShape& shape,
                                 const ExchangedPayload& payload) {
  std::vector<HostLoad> total(shape.workers_per_host.size());
  for (std::size_t h = 0; h < total.size(); ++h) total[h].host = static_cast<int>(h);
  for (const ExchangeLoad& exchange : exchange_loads(round, shape, payload)) {
    for (const HostLoad& load : exchange.hosts) {
      HostLoad& sum = total[static_cast<std::size_t>(load.host)];
      sum.sent_bytes += load.sent_bytes;
      sum.received_bytes += load.received_bytes;
      sum.inside_bytes += load.inside_bytes;
    }
  }
  return total;
}

std::vector<MeanLoad> mean_loads(const Schedule& schedule, int rounds,
                                 const ExchangedPayload& payload) {
  std::vector<MeanLoad> loads(schedule.shape.workers_per_host.size());
  for (int t = 0; t < rounds; ++t) {
    for (const HostLoad& host : host_loads(round_at(schedule, t), schedule.shape, payload)) {
      MeanLoad& load = loads[static_cast<std::size_t>(host.host)];
      load.sent_bytes += static_cast<double>(host.sent_bytes) / rounds;
      load.received_bytes += static_cast<double>(host.received_bytes) / rounds;
    }
  }
  return loads;
}

double busiest_link_s(const ClusterSpec& cluster, const std::vector<MeanLoad>& loads) {
  double most = 0;
  for (std::size_t h = 0; h < loads.size(); ++h) {
    const double bytes = std::max(loads[h].sent_bytes, loads[h].received_bytes);
    most = std::max(most, bytes / cluster.hosts[h].link.rate_bytes_per_s);
  }
  return most;
}

}  // namespace gossamer
