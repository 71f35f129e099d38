#pragma once
/// LostPeers: whom a worker goes on without.

#include <cstdint>
#include <exception>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "gossamer/base/errors.h"
#include "gossamer/exchange/plan.h"
#include "gossamer/transport/transport.h"

namespace gossamer {

/// Of a TransportError; rethrows another one.
Fault fault_of(const std::exception_ptr& error);

/// A peer that this worker goes on without.
struct LostPeer {
  int peer = 0;
  std::string why;
};

/// One whose edges are on again from the step after `steps` on.
struct PeerBack {
  int peer = 0;
  std::int64_t steps = 0;
};

/// Note [Without the lost]: with Lost::go_on an edge whose other end is lost is off: it moves
/// nothing. Of rounds in which neighbours swap whole payloads, the weight of the lost one goes back
/// to the worker, at both ends alike, so that a symmetric W stays doubly stochastic on those that
/// are left. Sums over a group cannot leave anybody out: then the whole group keeps its own in this
/// round. Both last until the rounds are formed anew, see Note [Rounds formed anew]. Whoever cannot
/// make a message that the plan asks for sends an empty one in its place, which refuses the
/// transfer; so all members hear of it and nobody waits for what never comes. No message is left
/// out by anybody who lives, so numbers and tags stay in step.
///
/// A peer that has been silent for long is expelled: if it only stood still, it hears that, and
/// ends at once. It cannot judge by itself who else has expelled it, nor whom it still hears: those
/// may be newcomers that only it has let in.
class LostPeers {
 public:
  /// Of a worker that exchanges with `peers`, whose rounds are formed anew after `census_every`
  /// steps at most; 0: never. The transport must outlive this.
  LostPeers(Transport& transport, std::vector<int> peers, std::int64_t census_every = 0);

  /// A transfer has failed: takes note of a peer that is lost. Rethrows what nobody goes on
  /// without, and ends as heed_expulsion() does. From any thread.
  /// `steps` as in is_off(): what was under way before a peer comes back says nothing of it.
  void pass_over(const std::exception_ptr& error, std::int64_t steps);
  /// A peer goes on without this worker. Throws TransportError, unless that peer is lost here, too.
  void heed_expulsion(int peer) const;
  /// A peer exchanges with another process in place of this one. Throws TransportError.
  [[noreturn]] void heed_replacement(int peer) const;
  /// This one is lost; once.
  void lose(LostPeer lost);
  /// From the step after `steps` on this peer is there again, and not before. See Note [Coming
  /// back].
  void come_back(int peer, std::int64_t steps);
  /// Whether a peer is not there in the step after `steps`; with −1, whether it ever was not.
  bool is_away(int peer, std::int64_t steps) const;
  /// Whether the edge to it is off in that step: also until it has a place in the rounds.
  bool is_off(int peer, std::int64_t steps) const;
  /// Whether one that the plan uses is.
  bool are_in(const Plan& plan, std::int64_t steps) const;
  /// The same on the side of the worker that comes back, of those that it comes back to.
  void begin_with(const std::vector<int>& peers, std::int64_t steps);
  /// Those that came back after so many steps: `from` or more, but fewer than `to`.
  std::vector<int> came_back(std::int64_t from, std::int64_t to) const;
  /// Those that were lost since the last call.
  std::vector<LostPeer> take_new();
  /// Those that have said since the last call when they come back.
  std::vector<PeerBack> take_new_back();
  /// Workers that it exchanges with and that are not lost, and itself.
  int live() const;

 private:
  [[noreturn]] void end(int peer, const char* reason, Fault fault) const;
  bool is_before_return(int peer, std::int64_t steps) const;

  Transport& transport_;
  const std::vector<int> peers_;
  const std::int64_t census_every_;
  mutable std::mutex mutex_;  ///< guards all below
  std::map<int, LostPeer> lost_;
  std::map<int, std::int64_t> back_;  ///< by peer: the steps done before it is there again
  std::vector<LostPeer> new_;
  std::vector<PeerBack> new_back_;
};

}  // namespace gossamer
