#pragma once
/// Wire: how payloads and frames get to one peer and back.

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "gossamer/transport/net/event_loop.h"
#include "gossamer/transport/net/net_operation.h"

namespace gossamer {

struct PeerState;
struct AcceptedConnection;

/// Why nothing more is exchanged with a peer, for errors and for the peer.
struct Ending {
  std::string here;
  std::string there;
  Fault fault = Fault::lost;  ///< here
};

/// Of an edge that goes beyond kMostOpen.
extern const Ending kTooMuch;
/// Of an edge over which two operations or memories that are still used would have one number.
extern const Ending kTwice;

/// What the connections of a wire should be like from now on.
struct Upkeep {
  EventLoop& loop;
  bool connects = false;  ///< this worker connects unless it has
  bool watches = true;    ///< the loop tells of events on the connections; else it forgets them
  /// At a beat: `alive` goes over each connection that has sent nothing since, and what has to be
  /// connected again is.
  std::optional<Deadline> idle_since = {};
};

/// The connections with one peer, one that each of the two has made. A wire tells the PeerState
/// what has become of operations and connections. Not for several threads at once.
///
/// Note [Ends in order]: each direction has a connection, and ends with it: frames that the peer
/// sent over the other connection before it left may still be on their way.
class Wire {
 public:
  virtual ~Wire() = default;
  /// Begins a send or a receive; connects first if that is needed. Fails the operation where it
  /// cannot be posted any more. Throws std::invalid_argument when one with the same tag is pending.
  virtual void post(const NetOperation::Pointer& operation, const NetPayload& payload) = 0;
  /// Gives back what the operation borrowed, and takes it back if it is pending; afterwards its
  /// memory is not touched any more.
  virtual void withdraw(NetOperation& operation) = 0;
  /// Takes the connection that the peer has made, unless there is one or it is of another kind.
  virtual void accept(AcceptedConnection&& accepted) = 0;
  /// There is an event on a connection (out: made by this worker, in: made by the peer), or the
  /// peer's process has ended: takes all frames that have come then.
  virtual void handle(EventLoop::Kind kind) = 0;
  virtual void maintain(const Upkeep& upkeep) = 0;
  /// Tells the peer and ends both directions, unless both have ended; with `linger`, gives the peer
  /// until then to take what was sent.
  virtual void close(const Ending& ending, std::optional<Deadline> linger) = 0;
};

/// Makes the wire of a peer with this state, which outlives it.
using MakeWire = std::function<std::unique_ptr<Wire>(PeerState&)>;

}  // namespace gossamer
