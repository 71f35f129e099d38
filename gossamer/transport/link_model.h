#pragma once
/// LinkModel: when messages arrive over shared links; pure arithmetic on virtual time, no threads.

#include <cstdint>
#include <deque>
#include <queue>
#include <unordered_map>
#include <vector>

#include "gossamer/base/cluster.h"

namespace gossamer {

/// A message under way in a LinkModel; 0 is none.
using FlightId = std::uint64_t;

struct Delivery {
  FlightId flight = 0;
  double time_s = 0;
};

/// Throws std::invalid_argument unless the rate is positive and the latency finite and ≥ 0.
void check_link(const LinkSpec& link);

/// Messages travel in frames of this size: 0.03 ms of the slowest station on the way, within
/// [1 KiB, 64 KiB].
std::int64_t frame_bytes(double rate_bytes_per_s);

/// Note [Emulated links]: two stations per host, egress and ingress of its link, and one for each
/// direction of two workers of a host. A station serves one frame at a time, in size / rate, and
/// takes the pairs of workers that have something there in turn, so that they share it fairly; what
/// a worker sends to the same peer goes one after the other, as over one connection. Between hosts
/// a frame passes the sender's egress, then the larger of the two hosts' latencies, then the
/// receiver's ingress; inside a host the pair's own station, then the latency. The switch between
/// the hosts holds any number of frames. On idle links of rate R a message takes size / R + latency
/// + (last frame) / R. All times are virtual: they follow from the times given to `launch`, not
/// from when `advance` is called, so a late caller loses no bandwidth.
class LinkModel {
 public:
  explicit LinkModel(const ClusterSpec& cluster);

  /// A message from rank `from` to rank `to` starts at `now_s`, which must not be before the time
  /// of the last `advance`. Returns 0 when its way takes no time at all.
  FlightId launch(double now_s, int from, int to, std::int64_t bytes);
  /// Frames that are not yet in service are dropped.
  void cancel(FlightId flight);
  /// All deliveries up to and including `now_s`, in the order of their times.
  std::vector<Delivery> advance(double now_s);
  /// The flight, which must be under way, is not delivered before this time.
  double delivery_bound_s(FlightId flight) const;
  /// Nothing under way is delivered before this time; infinity when idle. Cost: all flights.
  double next_delivery_bound_s() const;
  /// From the time of the last `advance` on: frames whose service starts later take the new rate,
  /// messages launched later the new latency.
  void set_link(int host, const LinkSpec& link);

 private:
  struct Station {
    double rate_bytes_per_s = 0;
    bool busy = false;
    std::deque<int> turn;  ///< pairs that have frames here
  };
  /// How far a flight is at one of its stations, in frames.
  struct Stage {
    int station = 0;
    std::int64_t waiting = 0;
    std::int64_t begun = 0;
    std::int64_t done = 0;
  };
  /// Flights from one worker to another that have frames at a station of their way, in order.
  struct Pair {
    std::deque<FlightId> waiting[2];  ///< by stage
    bool in_turn[2] = {false, false};
    int inside = -1;  ///< its station inside the host, once it has sent there
  };
  struct Flight {
    int pair = 0;
    double launched_s = 0;
    double latency_s = 0;
    std::int64_t bytes = 0;
    std::int64_t frame = 0;
    std::int64_t frames = 1;
    std::int64_t landed = 0;  ///< frames past the latency
    int stages = 1;
    Stage stage[2];
  };
  struct Event {
    enum class Kind { launched, served, landed };
    double time_s = 0;
    std::uint64_t order = 0;
    Kind kind = Kind::launched;
    FlightId flight = 0;
    int station = 0;
    int stage = 0;
    int pair = 0;
    bool operator>(const Event& other) const {
      return time_s != other.time_s ? time_s > other.time_s : order > other.order;
    }
  };

  static std::int64_t frame_size(const Flight& flight, std::int64_t index);
  double bound_s(const Flight& flight) const;
  Pair& pair(int index) { return pairs_[index]; }
  int inside_of(int host, int pair_index);
  int workers() const { return static_cast<int>(host_of_rank_.size()); }
  Station& station(int index) { return stations_[static_cast<std::size_t>(index)]; }
  void schedule(Event event);
  void handle(const Event& event, std::vector<Delivery>& deliveries);
  void enqueue(double now_s, FlightId id, Flight& flight, int stage, std::int64_t frames);
  void line_up(int station_index, int pair_index, int stage_index);
  void serve_next(double now_s, int station_index);
  void served(const Event& event, std::vector<Delivery>& deliveries);
  void landed(const Event& event, std::vector<Delivery>& deliveries);
  void deliver(double now_s, FlightId id, std::vector<Delivery>& deliveries);

  std::vector<int> host_of_rank_;
  std::vector<double> link_latency_s_;
  std::vector<LinkSpec> inside_;  ///< by host
  std::vector<Station> stations_;
  std::unordered_map<int, Pair> pairs_;  ///< by sender and receiver, once they have sent
  std::unordered_map<FlightId, Flight> flights_;
  std::priority_queue<Event, std::vector<Event>, std::greater<>> events_;
  double clock_s_ = 0;
  std::uint64_t last_flight_ = 0;
  std::uint64_t last_order_ = 0;
};

}  // namespace gossamer
