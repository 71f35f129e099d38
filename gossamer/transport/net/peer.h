#pragma once
/// Peer: one worker's sends to and receives from one other worker of its host.

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>

#include "gossamer/transport/net/connection.h"
#include "gossamer/transport/net/staging.h"

namespace gossamer {

/// One send or receive.
struct NetOperation {
  bool sending = false;
  int rank = 0;
  int peer = 0;
  Tag tag;
  std::size_t bytes = 0;
  Deadline posted;
  Deadline deadline;
  Status::State state = Status::State::pending;
  std::exception_ptr error = nullptr;
  std::uint64_t offer = 0;       ///< of a send: its own; of a receive: the one it has taken
  bool taken = false;            ///< of a send
  bool lends = false;            ///< of a send: done only when it comes back
  std::byte* landing = nullptr;  ///< of a receive
  std::span<const std::byte> content = {};  ///< of a receive that is done: where its bytes are
  std::shared_ptr<const SharedMapping> borrowed = nullptr;  ///< what content lies in, until back
};

/// Where the payload of a send is: in shared memory, or to be said with the offer.
struct NetPayload {
  std::span<const std::byte> bytes;
  std::shared_ptr<const SharedMemory> memory = nullptr;
  std::shared_ptr<const void> keeps = nullptr;  ///< until it is back
};

/// Why nothing more is exchanged with a peer, for errors and for the peer.
struct Ending {
  std::string here;
  std::string there;
};

/// Not for several threads at once: the transport has one lock for all its peers. Functions that
/// return bool tell whether an operation of this worker ended.
class Peer {
 public:
  Peer(int rank, int peer, std::string address, std::string token)
      : rank_(rank), peer_(peer), address_(std::move(address)), token_(std::move(token)) {}

  /// Throws std::invalid_argument when an operation with the same tag is pending on this side.
  bool send(const std::shared_ptr<NetOperation>& operation, const NetPayload& payload);
  bool receive(const std::shared_ptr<NetOperation>& operation);
  /// Fails the operation if it is pending and its deadline is not after `now`.
  bool expire(NetOperation& operation, Deadline now);
  /// Takes the operation back if it is pending, gives back what it borrowed.
  void release(NetOperation& operation);
  /// Fails what is pending and all that is posted later. The first ending counts.
  bool close(const Ending& ending);

  /// The peer has connected.
  void greet(PacketSocket socket);
  /// Hears what has come over one connection.
  bool hear(Connection& connection);
  /// The peer's process has ended: hears what it had still said.
  bool bury();
  /// Says that it is alive where nothing has been said since `before`; fails what is pending with a
  /// peer that has not said anything since `silent_since`.
  bool beat(Deadline before, Deadline silent_since);
  /// This worker itself was standing still: whoever is silent may not be.
  void excuse(Deadline now) { last_heard_ = std::max(last_heard_, now); }

  Connection& out() { return out_; }
  Connection& in() { return in_; }
  EdgeBytes traffic() const { return {.peer = peer_, .sent = sent_, .received = received_}; }
  bool is_used() const { return used_; }

 private:
  using Pointer = std::shared_ptr<NetOperation>;
  struct Lent {
    Pointer send;  ///< null once it has ended
    std::shared_ptr<const void> keeps;
    bool is_inline = false;
  };
  struct Offer {
    Words words;
    std::vector<std::byte> data;
    std::shared_ptr<const SharedMapping> memory;  ///< null: data
  };

  bool connect();
  bool refused(const Pointer& operation);
  std::uint64_t announce(const std::shared_ptr<const SharedMemory>& memory);
  void forget_memories();
  bool hear_one(Connection& connection, const Words& words, std::vector<std::byte>& data,
                Descriptor descriptor);
  bool hear_offer(const Words& words, std::vector<std::byte>& data);
  bool hear_taken(const Words& words);
  bool hear_back(const Words& words);
  bool hear_refuse(const Words& words);
  bool match(const Offer& offer, NetOperation& receive);
  void say_about(Say say, std::uint64_t offer, std::uint64_t bytes = 0);
  void fail(NetOperation& operation, const std::string& reason) const;
  bool fail_pending(const std::string& reason);
  bool end(const std::string& reason);

  const int rank_;
  const int peer_;
  const std::string address_;
  const std::string token_;
  std::optional<std::string> closed_;  ///< why
  Connection out_;                     ///< made by this worker, for its offers
  Connection in_;                      ///< made by the peer, for the peer's
  Deadline last_heard_ = {};
  bool used_ = false;
  std::int64_t sent_ = 0;
  std::int64_t received_ = 0;

  std::uint64_t last_offer_ = 0;
  std::map<Tag, Pointer> sends_;  ///< pending
  std::unordered_map<std::uint64_t, Lent> lent_;
  std::uint64_t last_memory_ = 0;
  std::map<std::weak_ptr<const SharedMemory>, std::uint64_t, std::owner_less<>> announced_;

  std::map<Tag, Pointer> receives_;  ///< pending
  std::map<Tag, Offer> offers_;      ///< not taken yet
  std::unordered_map<std::uint64_t, std::shared_ptr<const SharedMapping>> mappings_;
};

}  // namespace gossamer
