#pragma once
/// Network: transfers under way, and how fast each is while they share the links.

#include <cstdint>
#include <deque>
#include <unordered_map>
#include <vector>

#include "gossamer/base/cluster.h"
#include "gossamer/sim/event.h"
#include "gossamer/sim/fair_share.h"

namespace gossamer {

/// What a payload between hosts takes beyond its bytes: each frame of `frame_bytes` carries
/// `payload_bytes` of it (TCP over Ethernet with timestamps), and each message comes `message_s`
/// later than its last byte.
struct Framing {
  std::int64_t payload_bytes = 1448;
  std::int64_t frame_bytes = 1514;
  std::int64_t message_bytes = 0;  ///< header of each message
  double message_s = 0;
};

/// Bytes that a payload takes on a link between hosts; only full frames have the full overhead.
std::int64_t bytes_on_wire(const Framing& framing, std::int64_t bytes);

/// What crossed one host's link, and what its workers sent each other. Counted when it has left.
struct LinkTraffic {
  std::int64_t sent_bytes = 0;
  std::int64_t received_bytes = 0;
  std::int64_t sent_wire_bytes = 0;
  std::int64_t received_wire_bytes = 0;
  std::int64_t inside_bytes = 0;
  bool operator==(const LinkTraffic&) const = default;
  LinkTraffic& operator+=(const LinkTraffic& more);
};

namespace sim {

using TransferId = std::int32_t;
inline constexpr TransferId kNoTransfer = -1;

/// What is sent, and which of its receiver's receives it is.
struct Parcel {
  int from = 0;
  int to = 0;
  int edge = 0;
  int bucket = 0;
  std::int64_t exchange = 0;
  std::int64_t bytes = 0;
  int phase = 0;          ///< of the sender
  int receive_phase = 0;  ///< of the receiver
  int receive = 0;        ///< index among the receives of that phase
  bool is_lent = false;   ///< read where it is; see Note [Order of an exchange]
  int turns = 1;          ///< messages one after the other, each with its latency
  /// Of a crowd's transfer, which stands for all that a host moves: what it counts as. Else null.
  const LinkTraffic* sum = nullptr;
};

/// Whether it stands for what a host sends to and receives from others; else for what is inside.
constexpr bool is_whole_link(const Parcel& parcel) { return parcel.from == parcel.to; }

struct Transfer {
  Parcel parcel;
  bool exists = false;
  bool is_under_way = false;  ///< its bytes are moving
  SimTime sent{0};            ///< when the sender was ready
  SimTime begun{0};           ///< when its first byte left
  SimTime left{0};            ///< when its last byte did
  double remaining_bytes = 0;
  double bytes_per_ns = 0;
  SimTime since{0};  ///< of `remaining_bytes`
  std::uint32_t version = 0;
  int links[2] = {-1, -1};  ///< none inside a host
  int places[2] = {0, 0};   ///< in the links' lists
};

/// Note [Modelled links]: each host has a full-duplex link, that is an egress and an ingress, and
/// the transfers that cross them share them max-min fairly at every moment, as long TCP streams
/// come close to doing. Inside a host every ordered pair of workers has `inside` for itself. What a
/// worker sends to the same peer goes one after the other. The last byte arrives a latency after it
/// left: the larger of the two hosts', or that inside. A transfer ends at the nanosecond that
/// follows its exact end, so a time is late by less than 1 ns for every transfer before it.
/// Transport's LinkModel, with frames that take turns, agrees but for its last frame; inside a host
/// it has one bus for all.
class Network {
 public:
  /// Both must outlive the network.
  Network(const ClusterSpec& cluster, const Framing& framing, Events& events);

  /// The number of an ordered pair of workers.
  int edge(int from, int to);
  int edges() const { return static_cast<int>(edges_.size()); }
  /// A transfer that does not move yet.
  TransferId make(SimTime now, const Parcel& parcel);
  /// It takes its place behind the others of its edge.
  void depart(SimTime now, TransferId id);
  /// After an event `left`: false if it is outdated. Else an event `arrived` follows.
  bool has_left(SimTime now, TransferId id, std::uint32_t version);
  void remove(TransferId id);
  const Transfer& at(TransferId id) const { return transfers_[static_cast<std::size_t>(id)]; }
  const std::vector<Transfer>& transfers() const { return transfers_; }

  /// To be called once everything of one moment has happened, if anything is unsettled.
  void settle(SimTime now);
  bool is_unsettled() const { return !touched_.empty(); }

  /// From now on the link of the host has `factor` times its rate.
  void set_factor(int host, double factor);
  /// Whatever is on its way from or to the worker stays where it is.
  void lose(int worker);

  const std::vector<LinkTraffic>& traffic() const { return traffic_; }
  bool is_inside(const Parcel& p) const {
    return host_of(p.from) == host_of(p.to) && !is_whole_link(p);
  }
  const Framing& framing() const { return framing_; }
  int host_of(int worker) const { return host_of_[static_cast<std::size_t>(worker)]; }

 private:
  struct Link {
    double spec_bytes_per_ns = 0;
    double bytes_per_ns = 0;
    std::vector<TransferId> crossing;
    bool is_touched = false;
    int local = -1;  ///< index in the part of the network that is being settled
  };
  struct Edge {
    int from = 0;
    int to = 0;
    bool is_busy = false;
    bool is_cut = false;
    std::deque<TransferId> queue;
  };

  Transfer& transfer(TransferId id) { return transfers_[static_cast<std::size_t>(id)]; }
  Edge& edge_at(int index) { return edges_[static_cast<std::size_t>(index)]; }
  Link& link(int index) { return links_[static_cast<std::size_t>(index)]; }
  void begin(SimTime now, TransferId id);
  void cross(TransferId id, int side, int link_index);
  void leave_links(Transfer& transfer);
  void touch(int link_index);
  void gather_neighbourhood();
  void set_rate(SimTime now, TransferId id, double bytes_per_ns);
  void count(const Transfer& transfer);
  SimTime latency(const Parcel& parcel) const;
  std::int64_t wire_bytes(const Parcel& parcel) const;

  const ClusterSpec& cluster_;
  const Framing framing_;
  Events& events_;
  std::vector<int> host_of_;
  std::vector<Link> links_;  ///< egress and ingress of host h at 2h and 2h + 1
  std::vector<Edge> edges_;
  std::unordered_map<std::uint64_t, int> edge_of_;
  std::vector<Transfer> transfers_;
  std::vector<TransferId> free_;
  std::vector<LinkTraffic> traffic_;

  // Of the links whose transfers or rates have changed since the last settle().
  std::vector<int> touched_;
  FairShare share_;
  std::vector<int> part_links_;
  std::vector<TransferId> part_transfers_;
  std::vector<double> capacities_;
  std::vector<FairFlow> flows_;
};

}  // namespace sim
}  // namespace gossamer
