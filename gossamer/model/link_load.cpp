#include "gossamer/model/link_load.h"

#include <algorithm>
#include <map>

#include "gossamer/base/errors.h"

namespace gossamer {
namespace {

constexpr int kCountedExactly = 256;

std::vector<int> hosts_by_worker(const HostShape& shape) {
  std::vector<int> hosts;
  for (int h = 0; h < shape.hosts(); ++h) {
    hosts.insert(hosts.end(),
                 static_cast<std::size_t>(shape.workers_per_host[static_cast<std::size_t>(h)]), h);
  }
  return hosts;
}

Path path_of(const Plan& plan, int host, const std::vector<int>& host_of, DType dtype) {
  Path path;
  std::map<int, std::int64_t> to_peer;
  for (const Phase& phase : plan.phases) {
    std::int64_t inside = 0;
    bool crosses = false;
    const auto look = [&](const Message& message) {
      const auto bytes = static_cast<std::int64_t>(bytes_of(plan, message.slice, dtype));
      const bool is_inside = host_of[static_cast<std::size_t>(message.peer)] == host;
      if (is_inside) inside = std::max(inside, bytes);
      crosses = crosses || !is_inside;
      return is_inside ? bytes : 0;
    };
    for (const Message& send : phase.sends) to_peer[send.peer] += look(send);
    for (const Message& receive : phase.receives) look(receive);
    path.link_phases += crosses ? 1 : 0;
    path.inside_phases += inside > 0 ? 1 : 0;
    path.inside_bytes += inside;
  }
  for (const auto& [peer, bytes] : to_peer) path.pair_bytes = std::max(path.pair_bytes, bytes);
  return path;
}

Path longest(const Path& a, const Path& b) {
  return {.link_phases = std::max(a.link_phases, b.link_phases),
          .inside_phases = std::max(a.inside_phases, b.inside_phases),
          .inside_bytes = std::max(a.inside_bytes, b.inside_bytes),
          .pair_bytes = std::max(a.pair_bytes, b.pair_bytes)};
}

/// Adds what `worker` of a group that is a whole cluster sends and receives.
void add_plan(const Plan& plan, int host, const std::vector<int>& host_of, DType dtype,
              HostLoad& load) {
  const auto bytes = [&](const Message& message) {
    return static_cast<std::int64_t>(bytes_of(plan, message.slice, dtype));
  };
  const auto crosses = [&](const Message& message) {
    return host_of[static_cast<std::size_t>(message.peer)] != host;
  };
  for (const Phase& phase : plan.phases) {
    for (const Message& send : phase.sends) {
      (crosses(send) ? load.sent_bytes : load.inside_bytes) += bytes(send);
    }
    for (const Message& receive : phase.receives) {
      if (crosses(receive)) load.received_bytes += bytes(receive);
    }
  }
}

/// The loads of a group that has these many members on each of its hosts, by index of the host.
/// A plan depends on nothing else, so that the group may as well be a cluster of its own.
ExchangeLoad load_of_group(const std::vector<int>& members_by_host,
                           const ExchangedPayload& payload) {
  const HostShape shape{members_by_host};
  const Round everybody = complete_round(shape.workers());
  const std::vector<int> host_of = hosts_by_worker(shape);
  const bool even =
      std::ranges::adjacent_find(members_by_host, std::not_equal_to<>()) == members_by_host.end();
  const bool one_stands_for_all = even && shape.workers() > kCountedExactly;
  Path path;
  std::vector<HostLoad> loads(members_by_host.size());
  for (int worker = 0; worker < shape.workers(); ++worker) {
    const int host = host_of[static_cast<std::size_t>(worker)];
    if (one_stands_for_all && host > 0) break;
    const Plan plan = compile(everybody, shape, worker, payload.elements, payload.plan);
    add_plan(plan, host, host_of, payload.dtype, loads[static_cast<std::size_t>(host)]);
    path = longest(path, path_of(plan, host, host_of, payload.dtype));
  }
  if (one_stands_for_all) std::ranges::fill(loads, HostLoad(loads.front()));
  return {.members = {}, .hosts = std::move(loads), .path = path};
}

class GroupLoads {
 public:
  GroupLoads(const HostShape& shape, const ExchangedPayload& payload)
      : host_of_(hosts_by_worker(shape)), payload_(payload) {}

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
  const std::vector<int> host_of = hosts_by_worker(shape);
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

}  // namespace gossamer
