#include "gossamer/exchange/group_legs.h"

#include <algorithm>
#include <map>
#include <utility>

#include "gossamer/base/errors.h"

namespace gossamer {
namespace {

constexpr int kCountedExactly = 256;

using Peers = std::pair<std::vector<int>, std::vector<int>>;  // that it sends to, and receives from

Peers peers_of(const Phase& phase) {
  Peers peers;
  for (const Message& message : phase.sends) peers.first.push_back(message.peer);
  for (const Message& message : phase.receives) peers.second.push_back(message.peer);
  return peers;
}

/// By phase, the leg that it belongs to; the first is `first`.
std::vector<std::size_t> legs_of(const Plan& plan, std::size_t first) {
  std::vector<std::size_t> legs;
  Peers last;
  for (const Phase& phase : plan.phases) {
    Peers peers = peers_of(phase);
    const bool goes_on = !legs.empty() && peers == last;
    legs.push_back(legs.empty() ? first : legs.back() + (goes_on ? 0 : 1));
    last = std::move(peers);
  }
  return legs;
}

/// What one of its workers does in a phase; the host's leg has its sums, and of what is in turn the
/// longest.
void add_phase(const Plan& plan, const Phase& phase, const std::vector<int>& host_of, int host,
               DType dtype, HostLeg& mine) {
  std::int64_t longest = 0;
  bool crosses = false;
  const auto bytes = [&](const Message& message) {
    return static_cast<std::int64_t>(bytes_of(plan, message.slice, dtype));
  };
  const auto is_inside = [&](const Message& message) {
    return host_of[static_cast<std::size_t>(message.peer)] == host;
  };
  for (const Message& send : phase.sends) {
    const std::int64_t moved = bytes(send);
    if (is_inside(send)) {
      mine.inside_bytes += moved;
      longest = std::max(longest, moved);
    } else {
      mine.sent_bytes += moved;
      ++mine.sent_messages;
      crosses = true;
    }
  }
  for (const Message& receive : phase.receives) {
    if (is_inside(receive)) continue;
    mine.received_bytes += bytes(receive);
    ++mine.received_messages;
    crosses = true;
  }
  mine.longest_bytes += longest;
  mine.inside_phases += longest > 0 ? 1 : 0;
  mine.link_phases += crosses ? 1 : 0;
}

void add(const HostLeg& mine, HostLeg& host) {
  host.sent_bytes += mine.sent_bytes;
  host.received_bytes += mine.received_bytes;
  host.sent_messages += mine.sent_messages;
  host.received_messages += mine.received_messages;
  host.inside_bytes += mine.inside_bytes;
  host.link_phases = std::max(host.link_phases, mine.link_phases);
  host.longest_bytes = std::max(host.longest_bytes, mine.longest_bytes);
  host.inside_phases = std::max(host.inside_phases, mine.inside_phases);
}

}  // namespace

std::vector<Leg> group_legs(const std::vector<int>& members, std::int64_t elements, DType dtype,
                            const PlanOptions& options) {
  const HostShape shape{members};
  const Round everybody = complete_round(shape.workers());
  const std::vector<int> host_of = shape.hosts_by_rank();
  const bool one_stands_for_all = shape.workers() > kCountedExactly;
  const bool begins_inside =
      options.group_method == GroupMethod::hierarchical && std::ranges::max(members) > 1;
  std::map<int, int> alike;  // by number of members the first host with as many
  std::vector<Leg> legs;
  int worker = 0;
  for (std::size_t h = 0; h < members.size(); ++h) {
    const auto [like, is_new] = alike.try_emplace(members[h], static_cast<int>(h));
    if (one_stands_for_all && !is_new) {
      for (Leg& leg : legs) leg[h] = leg[static_cast<std::size_t>(like->second)];
      worker += members[h];
      continue;
    }
    for (int k = 0; k < members[h]; ++k, ++worker) {
      const Plan plan = compile(everybody, shape, worker, elements, options);
      // Who is alone on its host begins with what the others do next.
      const std::size_t skipped = begins_inside && members[h] == 1 ? 1 : 0;
      const std::vector<std::size_t> leg_of = legs_of(plan, skipped);
      std::vector<HostLeg> mine(leg_of.empty() ? 0 : leg_of.back() + 1);
      for (std::size_t p = 0; p < plan.phases.size(); ++p) {
        add_phase(plan, plan.phases[p], host_of, static_cast<int>(h), dtype, mine[leg_of[p]]);
      }
      while (legs.size() < mine.size()) legs.emplace_back(members.size());
      for (std::size_t l = 0; l < mine.size(); ++l) add(mine[l], legs[l][h]);
    }
  }
  return legs;
}

}  // namespace gossamer
