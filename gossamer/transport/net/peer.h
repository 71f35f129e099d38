#pragma once
/// Peer: one worker's sends to and receives from one other worker, however bytes get there.

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "gossamer/transport/net/event_loop.h"
#include "gossamer/transport/net/handshake.h"
#include "gossamer/transport/net/words.h"
#include "gossamer/transport/transport.h"

namespace gossamer {

class Peer;
class SharedMapping;

/// One send or receive.
struct NetOperation {
  bool sending = false;
  int rank = 0;
  int peer = 0;
  std::shared_ptr<Peer> at = nullptr;  ///< the peer as it was when the operation was posted
  Tag tag;
  std::size_t bytes = 0;
  Deadline posted;
  Deadline deadline;
  Status::State state = Status::State::pending;
  std::exception_ptr error = nullptr;
  std::uint64_t number = 0;                 ///< under which both ends know it, once they do
  bool taken = false;                       ///< of a send
  bool lends = false;                       ///< of a send: done only when it comes back
  std::span<const std::byte> payload = {};  ///< of a send, where it is sent from
  std::byte* landing = nullptr;             ///< of a receive
  std::size_t landed = 0;                   ///< bytes of a receive
  Clock::time_point arrived = {};           ///< of a receive that is done
  std::span<const std::byte> content = {};  ///< of a receive that is done: where its bytes are
  std::shared_ptr<const SharedMapping> borrowed = nullptr;  ///< what content lies in, until back
};

/// Where the payload of a send is, and what keeps it there.
struct NetPayload {
  std::span<const std::byte> bytes;
  std::shared_ptr<const SharedMemory> memory = nullptr;
  std::shared_ptr<const void> keeps = nullptr;  ///< until peers are through with it
};

/// Why nothing more is exchanged with a peer, for errors and for the peer.
struct Ending {
  std::string here;
  std::string there;
};

/// Of an edge that goes beyond kMostOpen.
extern const Ending kTooMuch;
/// Of one over which two things that are still there would have one number.
extern const Ending kTwice;

/// Between whom a Peer is.
struct PeerOptions {
  Introduction own;  ///< with the card
  int peer = 0;
  std::uint64_t generation = 0;  ///< of the peer
  std::string token;
  bool authenticates = false;  ///< payloads over streams, see NetOptions
};

/// One generation of another worker; see Note [Generations].
/// Not for several threads at once: the transport has one lock for all its peers. Functions that
/// return bool tell whether an operation of this worker ended.
class Peer {
 public:
  using Pointer = std::shared_ptr<NetOperation>;

  explicit Peer(PeerOptions options)
      : own_(std::move(options.own)),
        token_(std::move(options.token)),
        authenticates_(options.authenticates),
        rank_(static_cast<int>(own_.rank)),
        peer_(options.peer),
        generation_(options.generation) {}
  virtual ~Peer() = default;

  std::uint64_t generation() const { return generation_; }
  /// Connects unless it has; the peer is closed where nobody is there.
  virtual bool reach() = 0;
  /// After close(): the peer is not heard any more. What has been lent either way stays as it is
  /// until this object goes.
  virtual void retire(EventLoop& loop) = 0;
  /// Goes on with the figures of an earlier generation.
  void count_on_from(const Peer& former);

  /// Whether it can read this worker's shared memory, so that other payloads are copied there.
  virtual bool shares_memory() const = 0;
  /// Throws std::invalid_argument when an operation with the same tag is pending on this side.
  virtual bool send(const Pointer& operation, const NetPayload& payload) = 0;
  virtual bool receive(const Pointer& operation) = 0;
  /// Fails an operation instead of posting it.
  bool refuse(NetOperation& operation, const std::string& reason) const;
  /// Takes the operation back if it is pending, gives back what it borrowed; afterwards its memory
  /// is not touched any more.
  virtual void release(NetOperation& operation) = 0;
  /// Fails what is pending and all that is posted later. The first ending counts.
  virtual bool close(const Ending& ending) = 0;
  /// There is news on a connection: of kind out, made by this worker, or in, made by the peer.
  virtual bool hear(EventLoop::Kind kind) = 0;
  /// The peer's process has ended: hears what it had still said.
  virtual bool bury() = 0;
  /// After close(): gives the peer until `limit` to take what was said.
  virtual void finish(Deadline) {}
  /// Has the loop watch the connections as they are now; whether requests have ended meanwhile.
  virtual bool watch(EventLoop& loop) = 0;

  /// Fails the operation if it is pending and its deadline is not after `now`.
  bool expire(NetOperation& operation, Deadline now);
  /// Says that it is alive where nothing has been said since `before`; fails what is pending with a
  /// peer that has not said anything since `silent_since`.
  bool beat(Deadline before, Deadline silent_since);
  /// Note [Said in vain]: to hear words takes time that the words of other peers wait for, however
  /// few bytes they are. Those of a plan begin or end a payload, at once or later. Of others a peer
  /// may say as many at once as it may have open; then it is not heard until the next beat, and the
  /// system holds it up. Its next generation goes on from there.
  bool is_tiresome() const { return vain_ > static_cast<std::int64_t>(kMostOpen); }
  /// This worker itself was standing still: whoever is silent may not be.
  void excuse(Deadline now) { last_heard_ = std::max(last_heard_, now); }
  EdgeBytes traffic() const { return {.peer = peer_, .sent = sent_, .received = received_}; }
  bool is_used() const { return used_; }

 protected:
  /// Says that it is alive on each connection that has been still since `before`, and does what is
  /// to be done now and then; whether operations have ended by that.
  virtual bool say_alive(Deadline before) = 0;
  virtual bool is_connected() const = 0;
  /// What is kept of sends beyond `sends_`, or of receives beyond `receives_`, may go.
  virtual void forget_sends() = 0;
  virtual void forget_receives() = 0;

  /// Something was said; until it leads to something, in vain.
  void count_words(std::int64_t count = 1) { vain_ += count; }
  /// What was said has led to something.
  void count_use() { vain_ = std::max<std::int64_t>(vain_ - 1, 0); }
  /// Throws std::invalid_argument if one with its tag is pending.
  void add_pending(const Pointer& operation);
  void fail(NetOperation& operation, const std::string& reason) const;
  /// Whether operations like this one cannot be posted any more.
  bool is_closed_for(const NetOperation& operation) const;
  /// Fails an operation that is posted to a closed peer, with the reason.
  bool fail_if_closed(NetOperation& operation) const;
  /// The same where the peer may not be connected yet.
  bool refused(NetOperation& operation);
  bool is_closed() const { return closed_sends_ && closed_receives_; }
  /// Nothing more is sent, or received, or both, for this reason; the first one counts.
  ///
  /// Note [Ends in order]: each direction has a connection, and ends with it: what was said over
  /// the other one before the peer left may still be on its way.
  bool end_sends(const std::string& reason);
  bool end_receives(const std::string& reason);
  bool end(const std::string& reason);

  const Introduction own_;
  const std::string token_;
  const bool authenticates_;
  const int rank_;
  const int peer_;
  const std::uint64_t generation_;
  bool is_retired_ = false;
  std::optional<std::string> closed_sends_;     ///< why
  std::optional<std::string> closed_receives_;  ///< why
  Deadline last_heard_ = {};
  bool used_ = false;
  std::int64_t sent_ = 0;
  std::int64_t received_ = 0;
  std::int64_t vain_ = 0;            ///< words, less those of the time that has passed
  std::map<Tag, Pointer> sends_;     ///< pending
  std::map<Tag, Pointer> receives_;  ///< pending
};

}  // namespace gossamer
