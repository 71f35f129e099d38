#include "gossamer/sim/network.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "gossamer/base/errors.h"

namespace gossamer {

std::int64_t bytes_on_wire(const Framing& framing, std::int64_t bytes) {
  const std::int64_t total = bytes + framing.message_bytes;
  const std::int64_t frames = (total + framing.payload_bytes - 1) / framing.payload_bytes;
  return total + frames * (framing.frame_bytes - framing.payload_bytes);
}

LinkTraffic& LinkTraffic::operator+=(const LinkTraffic& more) {
  sent_bytes += more.sent_bytes;
  received_bytes += more.received_bytes;
  sent_wire_bytes += more.sent_wire_bytes;
  received_wire_bytes += more.received_wire_bytes;
  inside_bytes += more.inside_bytes;
  return *this;
}

namespace sim {
namespace {

// What is left over by rounding must not cost another nanosecond.
constexpr double kRounding_ns = 1e-3;

constexpr double kNs = 1e-9;

int egress_of(int host) { return 2 * host; }
int ingress_of(int host) { return 2 * host + 1; }

}  // namespace

Network::Network(const ClusterSpec& cluster, const Framing& framing, Events& events)
    : cluster_(cluster),
      framing_(framing),
      events_(events),
      host_of_(cluster.shape().hosts_by_rank()) {
  for (std::size_t h = 0; h < cluster.hosts.size(); ++h) {
    const double rate = cluster.hosts[h].link.rate_bytes_per_s * kNs;
    for (int side = 0; side < 2; ++side) {
      links_.push_back({.spec_bytes_per_ns = rate, .bytes_per_ns = rate, .crossing = {}});
    }
  }
  traffic_.resize(cluster.hosts.size());
}

int Network::edge(int from, int to) {
  const auto key = static_cast<std::uint64_t>(from) << 32 | static_cast<std::uint32_t>(to);
  const auto [at, is_new] = edge_of_.try_emplace(key, edges());
  if (is_new) edges_.push_back({.from = from, .to = to, .queue = {}});
  return at->second;
}

TransferId Network::make(SimTime now, const Parcel& parcel) {
  if (free_.empty()) {
    free_.push_back(static_cast<TransferId>(transfers_.size()));
    transfers_.emplace_back();
  }
  const TransferId id = free_.back();
  free_.pop_back();
  Transfer& made = transfer(id);
  const std::uint32_t version = made.version + 1;  // outdates events of the one before
  made = {.parcel = parcel, .exists = true, .sent = now, .version = version};
  return id;
}

void Network::depart(SimTime now, TransferId id) {
  Edge& edge = edge_at(transfer(id).parcel.edge);
  if (edge.is_cut) return;
  if (edge.is_busy) return edge.queue.push_back(id);
  edge.is_busy = true;
  begin(now, id);
}

void Network::begin(SimTime now, TransferId id) {
  Transfer& moving = transfer(id);
  moving.is_under_way = true;
  moving.begun = moving.since = now;
  const Parcel& parcel = moving.parcel;
  const int host = host_of(parcel.from);
  if (is_inside(parcel)) {
    const LinkSpec& inside = cluster_.hosts[static_cast<std::size_t>(host)].inside;
    moving.remaining_bytes = static_cast<double>(parcel.bytes);
    return set_rate(now, id, inside.rate_bytes_per_s * kNs);
  }
  moving.remaining_bytes = static_cast<double>(wire_bytes(parcel));
  cross(id, 0, egress_of(host));
  cross(id, 1, ingress_of(host_of(parcel.to)));
}

void Network::cross(TransferId id, int side, int link_index) {
  Transfer& moving = transfer(id);
  moving.links[side] = link_index;
  moving.places[side] = static_cast<int>(link(link_index).crossing.size());
  link(link_index).crossing.push_back(id);
  touch(link_index);
}

void Network::leave_links(Transfer& moving) {
  for (int side = 0; side < 2; ++side) {
    const int index = std::exchange(moving.links[side], -1);
    if (index < 0) continue;
    std::vector<TransferId>& crossing = link(index).crossing;
    const TransferId last = crossing.back();
    crossing[static_cast<std::size_t>(moving.places[side])] = last;
    transfer(last).places[side] = moving.places[side];
    crossing.pop_back();
    touch(index);
  }
}

void Network::touch(int link_index) {
  if (std::exchange(link(link_index).is_touched, true)) return;
  touched_.push_back(link_index);
}

bool Network::has_left(SimTime now, TransferId id, std::uint32_t version) {
  Transfer& moving = transfer(id);
  if (!moving.is_under_way || moving.version != version) return false;
  moving.is_under_way = false;
  moving.left = now;
  leave_links(moving);
  count(moving);
  events_.push(now + latency(moving.parcel), {.kind = Event::Kind::arrived, .who = id});
  Edge& edge = edge_at(moving.parcel.edge);
  edge.is_busy = !edge.queue.empty();
  if (edge.is_busy) {
    const TransferId next = edge.queue.front();
    edge.queue.pop_front();
    begin(now, next);
  }
  return true;
}

void Network::remove(TransferId id) {
  transfer(id).exists = false;
  free_.push_back(id);
}

SimTime Network::latency(const Parcel& parcel) const {
  const HostSpec& from = cluster_.hosts[static_cast<std::size_t>(host_of(parcel.from))];
  const HostSpec& to = cluster_.hosts[static_cast<std::size_t>(host_of(parcel.to))];
  const double once_s = is_inside(parcel)
                            ? from.inside.latency_s
                            : std::max(from.link.latency_s, to.link.latency_s) + framing_.message_s;
  return nearest_ns(parcel.turns * once_s);
}

std::int64_t Network::wire_bytes(const Parcel& parcel) const {
  if (!parcel.sum) return bytes_on_wire(framing_, parcel.bytes);
  return std::max(parcel.sum->sent_wire_bytes, parcel.sum->received_wire_bytes);
}

void Network::count(const Transfer& moving) {
  const Parcel& parcel = moving.parcel;
  LinkTraffic& from = traffic_[static_cast<std::size_t>(host_of(parcel.from))];
  if (parcel.sum) {
    from += *parcel.sum;
    return;
  }
  if (is_inside(parcel)) {
    from.inside_bytes += parcel.bytes;
    return;
  }
  LinkTraffic& to = traffic_[static_cast<std::size_t>(host_of(parcel.to))];
  const std::int64_t wire = wire_bytes(parcel);
  from.sent_bytes += parcel.bytes;
  from.sent_wire_bytes += wire;
  to.received_bytes += parcel.bytes;
  to.received_wire_bytes += wire;
}

/// All links that the touched ones can have an effect on: those reached over transfers.
void Network::gather_neighbourhood() {
  part_links_.clear();
  part_transfers_.clear();
  flows_.clear();
  const auto reach = [&](int index) {
    Link& reached = link(index);
    if (reached.local < 0) {
      reached.local = static_cast<int>(part_links_.size());
      part_links_.push_back(index);
    }
    return reached.local;
  };
  for (int index : touched_) {
    link(index).is_touched = false;
    reach(index);
  }
  for (std::size_t k = 0; k < part_links_.size(); ++k) {
    const int index = part_links_[k];
    const bool is_egress = index % 2 == 0;
    for (TransferId id : link(index).crossing) {
      const Transfer& moving = transfer(id);
      const int other = reach(moving.links[is_egress ? 1 : 0]);
      // Each transfer once: with its egress.
      if (!is_egress) continue;
      part_transfers_.push_back(id);
      flows_.push_back({static_cast<int>(k), other});
    }
  }
}

void Network::settle(SimTime now) {
  gather_neighbourhood();
  touched_.clear();
  capacities_.clear();
  for (int index : part_links_) {
    capacities_.push_back(link(index).bytes_per_ns);
    link(index).local = -1;
  }
  share_.solve(capacities_, flows_);
  for (std::size_t k = 0; k < flows_.size(); ++k) set_rate(now, part_transfers_[k], flows_[k].rate);
}

void Network::set_rate(SimTime now, TransferId id, double bytes_per_ns) {
  Transfer& moving = transfer(id);
  const bool is_new = moving.since == now && moving.begun == now;
  if (!is_new && moving.bytes_per_ns == bytes_per_ns) return;
  const auto passed_ns = static_cast<double>((now - moving.since).count());
  if (passed_ns > 0) {
    moving.remaining_bytes =
        std::max(0.0, moving.remaining_bytes - moving.bytes_per_ns * passed_ns);
  }
  moving.since = now;
  moving.bytes_per_ns = bytes_per_ns;
  ++moving.version;
  const double needed_ns = moving.remaining_bytes > 0 ? moving.remaining_bytes / bytes_per_ns : 0;
  if (std::isinf(needed_ns)) return;  // the link is down
  const SimTime end =
      now + SimTime(std::llround(std::ceil(std::max(0.0, needed_ns - kRounding_ns))));
  events_.push(end, {.kind = Event::Kind::left, .who = id, .detail = moving.version});
}

void Network::set_factor(int host, double factor) {
  for (int index : {egress_of(host), ingress_of(host)}) {
    link(index).bytes_per_ns = link(index).spec_bytes_per_ns * factor;
    touch(index);
  }
}

void Network::lose(int worker) {
  for (Edge& edge : edges_) {
    if (edge.from != worker && edge.to != worker) continue;
    edge.is_cut = true;
    edge.queue.clear();
  }
  for (Transfer& moving : transfers_) {
    const Parcel& parcel = moving.parcel;
    if (!moving.is_under_way || (parcel.from != worker && parcel.to != worker)) continue;
    moving.is_under_way = false;
    leave_links(moving);
  }
}

}  // namespace sim
}  // namespace gossamer
