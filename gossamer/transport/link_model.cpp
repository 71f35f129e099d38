#include "gossamer/transport/link_model.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

#include "gossamer/base/errors.h"

namespace gossamer {
namespace {

constexpr double kFrameTime_s = 0.03e-3;
constexpr std::int64_t kSmallestFrame = 1 << 10;
constexpr std::int64_t kLargestFrame = 1 << 16;
constexpr double kNever = std::numeric_limits<double>::infinity();

// The stations of a host, in their order.
int egress_of(int host) { return 2 * host; }
int ingress_of(int host) { return 2 * host + 1; }

}  // namespace

void check_link(const LinkSpec& link) {
  if (!(link.rate_bytes_per_s > 0)) {
    fail_argument({.place = "links",
                   .what = "the rate of a link must be positive",
                   .got = std::to_string(link.rate_bytes_per_s) + " bytes/s"});
  }
  if (!(link.latency_s >= 0) || std::isinf(link.latency_s)) {
    fail_argument({.place = "links",
                   .what = "the latency of a link must be finite and not negative",
                   .got = std::to_string(link.latency_s) + " s"});
  }
}

std::int64_t frame_bytes(double rate_bytes_per_s) {
  const double wanted = rate_bytes_per_s * kFrameTime_s;
  return static_cast<std::int64_t>(
      std::clamp(wanted, double{kSmallestFrame}, double{kLargestFrame}));
}

LinkModel::LinkModel(const ClusterSpec& cluster) {
  for (std::size_t h = 0; h < cluster.hosts.size(); ++h) {
    const HostSpec& host = cluster.hosts[h];
    check_link(host.link);
    check_link(host.inside);
    for (int w = 0; w < host.workers; ++w) host_of_rank_.push_back(static_cast<int>(h));
    link_latency_s_.push_back(host.link.latency_s);
    inside_.push_back(host.inside);
    stations_.push_back({.rate_bytes_per_s = host.link.rate_bytes_per_s, .turn = {}});
    stations_.push_back({.rate_bytes_per_s = host.link.rate_bytes_per_s, .turn = {}});
  }
}

/// The connection from one worker to another of the host.
int LinkModel::inside_of(int host, int pair_index) {
  int& index = pair(pair_index).inside;
  if (index < 0) {
    index = static_cast<int>(stations_.size());
    const double rate = inside_[static_cast<std::size_t>(host)].rate_bytes_per_s;
    stations_.push_back({.rate_bytes_per_s = rate, .turn = {}});
  }
  return index;
}

FlightId LinkModel::launch(double now_s, int from, int to, std::int64_t bytes) {
  const int a = host_of_rank_.at(static_cast<std::size_t>(from));
  const int b = host_of_rank_.at(static_cast<std::size_t>(to));
  Flight flight;
  flight.pair = from * workers() + to;
  flight.launched_s = now_s;
  flight.bytes = bytes;
  if (a == b) {
    flight.stages = 1;
    flight.stage[0].station = inside_of(a, flight.pair);
    flight.latency_s = inside_[static_cast<std::size_t>(a)].latency_s;
  } else {
    flight.stages = 2;
    flight.stage[0].station = egress_of(a);
    flight.stage[1].station = ingress_of(b);
    flight.latency_s = std::max(link_latency_s_[static_cast<std::size_t>(a)],
                                link_latency_s_[static_cast<std::size_t>(b)]);
  }
  double slowest = kNever;
  for (int s = 0; s < flight.stages; ++s) {
    slowest = std::min(slowest, station(flight.stage[s].station).rate_bytes_per_s);
  }
  if (std::isinf(slowest) && flight.latency_s == 0) return 0;
  flight.frame = frame_bytes(slowest);
  flight.frames = std::max<std::int64_t>(1, (bytes + flight.frame - 1) / flight.frame);
  const FlightId id = ++last_flight_;
  flights_.emplace(id, flight);
  schedule({.time_s = std::max(now_s, clock_s_), .kind = Event::Kind::launched, .flight = id});
  return id;
}

void LinkModel::cancel(FlightId flight) { flights_.erase(flight); }

std::vector<Delivery> LinkModel::advance(double now_s) {
  std::vector<Delivery> deliveries;
  while (!events_.empty() && events_.top().time_s <= now_s) {
    const Event event = events_.top();
    events_.pop();
    handle(event, deliveries);
  }
  clock_s_ = std::max(clock_s_, now_s);
  return deliveries;
}

double LinkModel::delivery_bound_s(FlightId flight) const {
  return std::max(bound_s(flights_.at(flight)), events_.top().time_s);
}

double LinkModel::next_delivery_bound_s() const {
  if (flights_.empty()) return kNever;
  double bound = kNever;
  for (const auto& [id, flight] : flights_) bound = std::min(bound, bound_s(flight));
  return std::max(bound, events_.top().time_s);
}

void LinkModel::set_link(int host, const LinkSpec& link) {
  check_link(link);
  link_latency_s_.at(static_cast<std::size_t>(host)) = link.latency_s;
  station(egress_of(host)).rate_bytes_per_s = link.rate_bytes_per_s;
  station(ingress_of(host)).rate_bytes_per_s = link.rate_bytes_per_s;
}

std::int64_t LinkModel::frame_size(const Flight& flight, std::int64_t index) {
  return std::min(flight.frame, flight.bytes - index * flight.frame);
}

// As if the flight had its slowest remaining station for itself; frames in service count as done.
double LinkModel::bound_s(const Flight& flight) const {
  const double from_s = std::max(clock_s_, flight.launched_s);
  double bound = from_s;
  for (int s = 0; s < flight.stages; ++s) {
    const Stage& stage = flight.stage[s];
    const std::int64_t begun = std::min(flight.bytes, stage.begun * flight.frame);
    const auto rate = stations_[static_cast<std::size_t>(stage.station)].rate_bytes_per_s;
    const double latency_s = begun < flight.bytes && s == 0 ? flight.latency_s : 0;
    bound = std::max(bound, from_s + static_cast<double>(flight.bytes - begun) / rate + latency_s);
  }
  return bound;
}

void LinkModel::schedule(Event event) {
  event.order = ++last_order_;
  events_.push(event);
}

void LinkModel::handle(const Event& event, std::vector<Delivery>& deliveries) {
  switch (event.kind) {
    case Event::Kind::launched: {
      const auto at = flights_.find(event.flight);
      if (at == flights_.end()) return;  // cancelled
      return enqueue(event.time_s, at->first, at->second, 0, at->second.frames);
    }
    case Event::Kind::served:
      return served(event, deliveries);
    case Event::Kind::landed:
      return landed(event, deliveries);
  }
}

void LinkModel::enqueue(double now_s, FlightId id, Flight& flight, int stage_index,
                        std::int64_t frames) {
  Stage& stage = flight.stage[stage_index];
  std::deque<FlightId>& waiting = pair(flight.pair).waiting[stage_index];
  if (stage.waiting == 0) waiting.push_back(id);
  stage.waiting += frames;
  line_up(stage.station, flight.pair, stage_index);
  if (!station(stage.station).busy) serve_next(now_s, stage.station);
}

/// A pair that has frames at a station takes its turn there, once.
void LinkModel::line_up(int station_index, int pair_index, int stage_index) {
  Pair& lined_up = pair(pair_index);
  if (lined_up.in_turn[stage_index] || lined_up.waiting[stage_index].empty()) return;
  lined_up.in_turn[stage_index] = true;
  station(station_index).turn.push_back(pair_index);
}

void LinkModel::serve_next(double now_s, int station_index) {
  Station& server = station(station_index);
  while (!server.turn.empty()) {
    const int pair_index = server.turn.front();
    server.turn.pop_front();
    const int receiver = host_of_rank_[static_cast<std::size_t>(pair_index % workers())];
    const int stage_index = station_index == ingress_of(receiver) ? 1 : 0;
    Pair& next = pair(pair_index);
    std::deque<FlightId>& waiting = next.waiting[stage_index];
    while (!waiting.empty() && !flights_.contains(waiting.front()))
      waiting.pop_front();  // cancelled
    if (waiting.empty()) {
      next.in_turn[stage_index] = false;
      continue;
    }
    const FlightId id = waiting.front();
    Flight& flight = flights_.at(id);
    Stage& stage = flight.stage[stage_index];
    const auto size = static_cast<double>(frame_size(flight, stage.begun));
    if (--stage.waiting == 0) waiting.pop_front();
    ++stage.begun;
    server.busy = true;
    schedule({.time_s = now_s + size / server.rate_bytes_per_s,
              .kind = Event::Kind::served,
              .flight = id,
              .station = station_index,
              .stage = stage_index,
              .pair = pair_index});
    return;
  }
}

void LinkModel::served(const Event& event, std::vector<Delivery>& deliveries) {
  station(event.station).busy = false;
  pair(event.pair).in_turn[event.stage] = false;
  line_up(event.station, event.pair, event.stage);
  const auto at = flights_.find(event.flight);
  if (at != flights_.end()) {
    Flight& flight = at->second;
    Stage& stage = flight.stage[event.stage];
    ++stage.done;
    if (event.stage == 0) {
      schedule({.time_s = event.time_s + flight.latency_s,
                .kind = Event::Kind::landed,
                .flight = event.flight});
    } else if (stage.done == flight.frames) {
      deliver(event.time_s, event.flight, deliveries);
    }
  }
  serve_next(event.time_s, event.station);
}

void LinkModel::landed(const Event& event, std::vector<Delivery>& deliveries) {
  const auto at = flights_.find(event.flight);
  if (at == flights_.end()) return;  // cancelled
  Flight& flight = at->second;
  ++flight.landed;
  if (flight.stages == 2) return enqueue(event.time_s, event.flight, flight, 1, 1);
  if (flight.landed == flight.frames) deliver(event.time_s, event.flight, deliveries);
}

void LinkModel::deliver(double now_s, FlightId id, std::vector<Delivery>& deliveries) {
  flights_.erase(id);
  deliveries.push_back({id, now_s});
}

}  // namespace gossamer
