#pragma once
/// Exchanges: every worker's buckets on their way through the phases of their Plans.

#include <array>
#include <cstdint>
#include <functional>
#include <vector>

#include "gossamer/base/timeline.h"
#include "gossamer/sim/crowd.h"
#include "gossamer/sim/moments.h"
#include "gossamer/sim/network.h"
#include "gossamer/sim/script.h"

namespace gossamer {

/// That of a transfer whose last byte arrives now, of a pattern with one exchange per step.
TimelineMessage message_of(const sim::Transfer& transfer, SimTime arrived);

/// A worker that waited for another when the simulation ended.
struct WaitsFor {
  int worker = 0;
  int peer = 0;
  std::int64_t step = 0;
  int bucket = 0;
  bool is_receive = true;  ///< else for the peer to take what it sends
  bool operator==(const WaitsFor&) const = default;
};

namespace sim {

/// Note [Order of an exchange]: as the engine's Exchange does it. On entering a phase a worker
/// posts its receives and its sends; it goes on to the next once the receives are in (sums take no
/// time), and has ended when nothing it sent is left to be sent. The receives of the first phase
/// are posted one exchange ahead where the pattern sends ahead. A payload moves once its receiver
/// has posted the receive: nobody stores what is unexpected. A bucket's exchanges are numbered
/// through all steps and stages.
///
/// Under cwa parameters are lent, for a worker updates them in a second memory: its next exchange,
/// not this one, ends only when they are back. From another host they are when they have left, from
/// a mate when it has made its own update with them. Crowds (crowd.h) keep to neither: their
/// members' exchanges end together.
class Exchanges {
 public:
  using OnMessage = std::function<void(const TimelineMessage&)>;

  /// All must outlive this; `on_message` may be empty.
  Exchanges(const SimMethod& method, const Workload& workload, std::int64_t steps,
            int largest_group, const HostShape& shape, Network& network, Events& events,
            OnMessage on_message);

  /// Launches the exchange of a worker's bucket; the one before must have ended.
  void launch(SimTime now, int worker, int bucket, std::int64_t exchange);
  bool has_ended(int worker, int bucket) const;
  /// Whether the worker exchanges anything then.
  bool takes_part(int worker, int bucket, std::int64_t exchange);
  /// What it costs the worker's host.
  HostWork host_work(int worker, int bucket, std::int64_t exchange);
  /// Of which step the current exchange is, and when it was launched.
  std::int64_t step(int worker, int bucket) const {
    return lanes_[index(worker, bucket * payloads_)].exchange / stages_;
  }
  SimTime launched_at(int worker, int bucket) const;

  struct Ended {
    int worker = -1;  ///< whose exchange this has ended; −1: nobody's
    int bucket = 0;
  };
  /// The last byte of a transfer has left.
  Ended left(SimTime now, TransferId id);
  /// It has arrived, and is removed.
  Ended arrived(SimTime now, TransferId id);
  /// Something that the worker lent is back, or its crowd has ended; see Note [Tracks].
  Ended returned(SimTime now, int worker, int track) { return go_on_to_end(now, worker, track); }

  void lose(SimTime now, int worker);
  /// What the exchanges that have not ended wait for, except those of lost workers.
  std::vector<WaitsFor> open_waits() const;

 private:
  /// Note [Tracks]: a bucket has an exchange for each payload of the pattern, all by one Plan and
  /// at one time. Payload k of bucket b is track b · payloads + k; the bucket's exchange has ended
  /// when those of its tracks have.
  ///
  /// One track of one worker.
  struct Lane {
    ScriptBook::Scripts scripts;  ///< of the current exchange
    ScriptBook::Scripts ahead_scripts;
    std::int64_t exchange = -1;
    std::int64_t ahead = -1;  ///< the exchange whose first receives are posted early, or −1
    int phase = 0;
    int missing = 0;                ///< receives of the phase that are not in
    int sends_open = 0;             ///< that are not lent
    std::array<int, 2> lent{0, 0};  ///< of even and odd exchanges: what is not back
    bool has_ended = true;
    SimTime launched{0};
    std::vector<char> got;  ///< by receive of the phase
    std::vector<char> got_ahead;
    std::vector<int> borrowed;        ///< from which mates, for the current exchange
    std::vector<int> borrowed_ahead;  ///< for the next one
    std::vector<TransferId> held;     ///< sent to it before it posted the receive
  };

  Lane& lane(int worker, int track) { return lanes_[index(worker, track)]; }
  int tracks() const { return static_cast<int>(workload_.buckets.size()) * payloads_; }
  std::size_t index(int worker, int track) const {
    return static_cast<std::size_t>(worker * tracks() + track);
  }
  void launch_track(SimTime now, int worker, int track, std::int64_t exchange);
  void enter_phase(SimTime now, int worker, int track);
  void go_on(SimTime now, int worker, int track);
  Ended go_on_to_end(SimTime now, int worker, int track);
  void give_back(SimTime now, Lane& lane, int track);
  Ended message_arrived(SimTime now, const Parcel& parcel);
  void add_open_waits(int worker, int track, std::vector<WaitsFor>& waits) const;
  void post_ahead(SimTime now, int worker, int track);
  void release_held(SimTime now, Lane& lane);
  static bool has_posted(const Lane& lane, const Parcel& parcel);
  bool is_lost(int worker) const { return lost_[static_cast<std::size_t>(worker)] != 0; }

  const Workload& workload_;
  const int stages_;
  const int payloads_;        ///< of a stage
  const std::int64_t count_;  ///< of a bucket's exchanges
  const bool posts_ahead_;
  const bool lends_;
  Network& network_;
  Events& events_;
  ScriptBook book_;
  CrowdBoard crowds_;
  OnMessage on_message_;
  std::vector<Lane> lanes_;
  std::vector<char> lost_;
};

}  // namespace sim
}  // namespace gossamer
