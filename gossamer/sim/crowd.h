#pragma once
/// Crowds: groups with too many members to follow message by message.

#include <cstdint>
#include <map>
#include <tuple>
#include <vector>

#include "gossamer/exchange/plan.h"
#include "gossamer/sim/network.h"

namespace gossamer::sim {

/// Note [Crowds]: a group of n workers sends n(n − 1) messages or more per bucket. A large one is
/// followed host by host: it begins when all its members have launched, and each leg of its plans
/// (exchange/group_legs.h) moves, on the links of every host, what the host sends and receives,
/// and inside it the longest that one worker sends another. A leg begins when the one before has
/// ended for all; the members' exchanges end with the last. Without jitter that is what the single
/// messages do; what early members send while they wait for late ones is left out, since the late
/// ones have to move as much. Its transfers go from a host's first worker to itself, over the
/// links, and to the second one of the host, inside.
struct CrowdPart {
  int first = 0;  ///< worker
  int edge = 0;
  int second = -1;      ///< the next worker of its host; −1: it is alone
  int inside_edge = 0;  ///< from first to second
  int link_turns = 0;
  int inside_turns = 0;
  std::int64_t longest_bytes = 0;
  LinkTraffic link;
  LinkTraffic inside;
};

struct Crowd {
  std::vector<int> members;
  std::vector<std::vector<CrowdPart>> legs;  ///< by leg and host
};

Crowd make_crowd(const std::vector<int>& group, std::int64_t elements, DType dtype,
                 const PlanOptions& options, Network& network);

/// The crowds that are gathering or moving.
class CrowdBoard {
 public:
  /// Both must outlive it.
  CrowdBoard(Network& network, Events& events) : network_(network), events_(events) {}

  /// A member has launched. The crowd must outlive the exchange. When the exchange ends an event
  /// `returned` follows for every member; has_ended() is true by then.
  void join(SimTime now, const Crowd& crowd, int worker, int bucket, std::int64_t exchange);
  /// A crowd's transfer has come.
  void arrived(SimTime now, const Crowd& crowd, const Parcel& parcel);
  bool has_ended(const Crowd& crowd, int bucket, std::int64_t exchange) const;
  /// It moves nothing any more where this worker is a member.
  void lose(int worker);
  /// Those whom a member waits for: who is not there, or lost.
  std::vector<int> missing(const Crowd& crowd, int bucket, std::int64_t exchange) const;

 private:
  struct Gathering {
    const Crowd* crowd = nullptr;
    std::vector<int> joined;
    std::size_t leg = 0;
    int on_the_way = 0;  ///< transfers
  };
  using Key = std::tuple<int, std::int64_t, int>;  // bucket, exchange, first member
  static Key key(const Crowd& crowd, int bucket, std::int64_t exchange) {
    return {bucket, exchange, crowd.members.front()};
  }
  void begin_leg(SimTime now, Gathering& gathering, int bucket, std::int64_t exchange);
  bool is_lost(int worker) const;

  Network& network_;
  Events& events_;
  std::map<Key, Gathering> gatherings_;
  std::vector<int> lost_;
};

}  // namespace gossamer::sim
