#pragma once
/// Peer: one worker's sends to and receives from one other worker, whatever the wire between them.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "gossamer/transport/net/event_loop.h"
#include "gossamer/transport/net/peer_state.h"
#include "gossamer/transport/net/silence_watch.h"
#include "gossamer/transport/net/wire.h"

namespace gossamer {

/// What a beat of the transport compares with.
struct Beat {
  Deadline idle_since;  ///< the peer gets `alive` over connections that have sent nothing since
  Silence silence = Silence::none;  ///< of a peer that is given up, what is pending fails
  /// This worker itself stood still until now: a peer that is silent may not be.
  bool forgives_silence = false;
};

/// One generation of another worker; see Note [Generations]. After each function the loop watches
/// the connections as they are then. Operations that end go into the list `ended`. Not for several
/// threads at once: the transport has one lock for all its peers.
class Peer {
 public:
  using Pointer = NetOperation::Pointer;

  /// The loop and the list must outlive the last call.
  Peer(PeerOptions options, EventLoop& loop, EndedOperations& ended, const MakeWire& make_wire);

  std::uint64_t generation() const { return state_.options.generation; }
  /// Nothing before the first operation.
  std::optional<EdgeBytes> traffic() const { return state_.operations.traffic(); }
  /// It has been talked to, and has not ended.
  bool is_there() const { return traffic().has_value() && !state_.operations.has_ended(); }
  LastHeard last_heard() const;
  /// Why operations have failed where nothing was heard of it; else empty.
  const std::string& silence() const { return silence_; }
  /// It has ended this worker's requests, since it had heard nothing of it.
  bool has_expelled() const { return state_.operations.has_ended_by(Fault::expelled); }
  /// It is not read until the next beat; see Note [Useless frames].
  bool is_throttled() const { return state_.frames.is_spent(); }

  /// Connects unless it has; the peer is closed where nobody is there.
  void connect();
  /// The peer has connected and proved its identity.
  void accept(AcceptedConnection&& accepted);
  /// Begins a send of the payload, or a receive. Throws std::invalid_argument when an operation
  /// with the same tag is pending on this side.
  void post(const Pointer& operation, const NetPayload& payload = {});
  /// Takes the operation back if it is pending, gives back what it borrowed; afterwards its memory
  /// is not touched any more.
  void release(const Pointer& operation);
  /// Fails the operation if it is pending and its deadline is not after `now`.
  void expire(const Pointer& operation, Deadline now, const SilenceWatch& silences);
  /// There is an event on a connection of kind out or in, or the peer's process has ended.
  void handle(EventLoop::Kind kind);
  void beat(const Beat& beat);
  /// Fails what is pending and all that is posted later. The first ending counts. With `linger`,
  /// gives the peer until then to take what was sent.
  void close(const Ending& ending, std::optional<Deadline> linger = {});
  /// Takes the place of an earlier generation, which is closed and not read any more; its figures
  /// go on here. What the former one has lent either way stays as it is until that object goes.
  void replace(Peer& former, const Ending& ending);

 private:
  template <class Work>
  void work(const Work& work);
  void settle();

  EventLoop& loop_;
  PeerState state_;
  const std::unique_ptr<Wire> wire_;
  bool is_retired_ = false;
  std::string silence_;
};

/// What a worker with these peers says to each, and why what is under way ends.
Ending ending_of_one_that_leaves(const std::vector<std::shared_ptr<Peer>>& peers);

}  // namespace gossamer
