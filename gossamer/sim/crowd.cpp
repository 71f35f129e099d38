#include "gossamer/sim/crowd.h"

#include <algorithm>

#include "gossamer/base/errors.h"
#include "gossamer/exchange/group_legs.h"

namespace gossamer::sim {
namespace {

/// Of so many messages of nearly the same length.
std::int64_t wire_bytes(const Framing& framing, std::int64_t bytes, int messages) {
  if (messages == 0) return 0;
  const std::int64_t each = bytes / messages;
  return messages * bytes_on_wire(framing, each) + (bytes - messages * each);
}

CrowdPart part_of(const HostLeg& leg, int first, int second, Network& network) {
  const Framing& framing = network.framing();
  CrowdPart part{.first = first, .edge = network.edge(first, first), .second = second};
  if (second >= 0) part.inside_edge = network.edge(first, second);
  part.link_turns = leg.link_phases;
  part.inside_turns = leg.inside_phases;
  part.longest_bytes = leg.longest_bytes;
  part.link = {
      .sent_bytes = leg.sent_bytes,
      .received_bytes = leg.received_bytes,
      .sent_wire_bytes = wire_bytes(framing, leg.sent_bytes, leg.sent_messages),
      .received_wire_bytes = wire_bytes(framing, leg.received_bytes, leg.received_messages)};
  part.inside = {.inside_bytes = leg.inside_bytes};
  return part;
}

}  // namespace

Crowd make_crowd(const std::vector<int>& group, std::int64_t elements, DType dtype,
                 const PlanOptions& options, Network& network) {
  std::vector<int> members_by_host;
  std::vector<int> first;  // index in the group of each host's first member
  for (std::size_t k = 0; k < group.size(); ++k) {
    if (k == 0 || network.host_of(group[k]) != network.host_of(group[k - 1])) {
      members_by_host.push_back(0);
      first.push_back(static_cast<int>(k));
    }
    ++members_by_host.back();
  }
  Crowd crowd{.members = group, .legs = {}};
  for (const Leg& leg : group_legs(members_by_host, elements, dtype, options)) {
    std::vector<CrowdPart>& parts = crowd.legs.emplace_back();
    for (std::size_t h = 0; h < leg.size(); ++h) {
      const auto at = static_cast<std::size_t>(first[h]);
      const int second = members_by_host[h] > 1 ? group[at + 1] : -1;
      parts.push_back(part_of(leg[h], group[at], second, network));
    }
  }
  return crowd;
}

void CrowdBoard::join(SimTime now, const Crowd& crowd, int worker, int bucket,
                      std::int64_t exchange) {
  Gathering& mine = gatherings_[key(crowd, bucket, exchange)];
  mine.crowd = &crowd;
  mine.joined.push_back(worker);
  if (mine.joined.size() == crowd.members.size()) begin_leg(now, mine, bucket, exchange);
}

/// The next one in which anything moves.
void CrowdBoard::begin_leg(SimTime now, Gathering& gathering, int bucket, std::int64_t exchange) {
  const Crowd& crowd = *gathering.crowd;
  for (const int lost : lost_) {
    if (std::ranges::binary_search(crowd.members, lost)) return;
  }
  while (gathering.on_the_way == 0 && gathering.leg < crowd.legs.size()) {
    const auto depart = [&](Parcel parcel) {
      parcel.bucket = bucket;
      parcel.exchange = exchange;
      ++gathering.on_the_way;
      network_.depart(now, network_.make(now, parcel));
    };
    for (const CrowdPart& part : crowd.legs[gathering.leg]) {
      if (part.link_turns > 0) {
        depart({.from = part.first,
                .to = part.first,
                .edge = part.edge,
                .turns = part.link_turns,
                .sum = &part.link});
      }
      if (part.inside_turns > 0) {
        depart({.from = part.first,
                .to = part.second,
                .edge = part.inside_edge,
                .bytes = part.longest_bytes,
                .turns = part.inside_turns,
                .sum = &part.inside});
      }
    }
    ++gathering.leg;
  }
  if (gathering.on_the_way > 0) return;
  gatherings_.erase(key(crowd, bucket, exchange));
  for (int member : crowd.members) {
    events_.push(now, {.kind = Event::Kind::returned,
                       .who = member,
                       .detail = static_cast<std::uint32_t>(bucket)});
  }
}

void CrowdBoard::arrived(SimTime now, const Crowd& crowd, const Parcel& parcel) {
  const auto at = gatherings_.find(key(crowd, parcel.bucket, parcel.exchange));
  GOSSAMER_ASSERT(at != gatherings_.end());
  if (--at->second.on_the_way == 0) begin_leg(now, at->second, parcel.bucket, parcel.exchange);
}

bool CrowdBoard::has_ended(const Crowd& crowd, int bucket, std::int64_t exchange) const {
  return !gatherings_.contains(key(crowd, bucket, exchange));
}

void CrowdBoard::lose(int worker) { lost_.push_back(worker); }

bool CrowdBoard::is_lost(int worker) const {
  return std::ranges::find(lost_, worker) != lost_.end();
}

std::vector<int> CrowdBoard::missing(const Crowd& crowd, int bucket, std::int64_t exchange) const {
  std::vector<int> missing;
  const auto at = gatherings_.find(key(crowd, bucket, exchange));
  if (at == gatherings_.end()) return missing;
  std::vector<int> joined = at->second.joined;
  std::ranges::sort(joined);
  for (int member : crowd.members) {
    if (is_lost(member) || !std::ranges::binary_search(joined, member)) missing.push_back(member);
  }
  return missing;
}

}  // namespace gossamer::sim
