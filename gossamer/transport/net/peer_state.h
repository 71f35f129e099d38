#pragma once
/// PeerState: what a Peer and its Wire know of the operations with one other worker.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "gossamer/transport/net/handshake.h"
#include "gossamer/transport/net/net_operation.h"

namespace gossamer {

/// Between whom a Peer is.
struct PeerOptions {
  Identity own;  ///< with the endpoint
  int peer = 0;
  std::uint64_t generation = 0;  ///< of the peer
  std::string token;
  bool authenticates = false;  ///< payloads over streams, see NetOptions
};

enum class Direction { send, receive };

/// Pending operations, the reasons why no more can be posted, signs of life, and figures. Every
/// operation that ends here goes into the list of the transport, so that who waits for it is woken.
/// Not for several threads at once.
class PeerState {
 public:
  PeerState(PeerOptions options, EndedOperations& ended)
      : options_(std::move(options)), ended_(ended) {}

  const PeerOptions& options() const { return options_; }

  /// Throws std::invalid_argument if one with its tag is pending.
  void add(const NetOperation::Pointer& operation);
  /// The pending operation with this tag; null without one.
  NetOperation::Pointer find(Direction direction, Tag tag) const;
  std::vector<NetOperation::Pointer> pending() const;
  /// A send is done.
  void complete(const NetOperation::Pointer& send);
  /// A receive is done, and this is where its bytes are.
  void complete(const NetOperation::Pointer& receive, std::span<const std::byte> content);
  void fail(const NetOperation::Pointer& operation, const std::string& reason);
  /// Fails it without telling anybody: its owner gives it up.
  void drop(const NetOperation::Pointer& operation, const std::string& reason);

  /// Nothing more is sent, or received, for this reason: fails what is pending. False if the
  /// direction had ended before; the first reason counts.
  bool end(Direction direction, const std::string& reason);
  bool has_ended(Direction direction) const { return side(direction).ending.has_value(); }
  /// Both directions have.
  bool has_ended() const { return has_ended(Direction::send) && has_ended(Direction::receive); }
  /// Fails an operation, with the reason, where its direction has ended.
  bool fail_if_ended(const NetOperation::Pointer& operation);

  /// The peer was there at this moment.
  void see(Deadline moment) { last_seen_ = std::max(last_seen_, moment); }
  Deadline last_seen() const { return last_seen_; }

  void count_sent(std::size_t bytes) { figures_.sent += static_cast<std::int64_t>(bytes); }
  /// Nothing before the first operation.
  std::optional<EdgeBytes> traffic() const;
  /// A frame has come; it is useless until it begins or ends a payload, see count_use().
  void count_frame() { ++figures_.useless; }
  void count_use() { figures_.useless = std::max<std::int64_t>(figures_.useless - 1, 0); }
  /// A beat has passed.
  void forgive_useless();
  /// Note [Useless frames]: to handle a frame takes time for which the frames of other peers wait,
  /// however few bytes it has. Frames of a plan begin or end a payload, at once or later. Of others
  /// a peer may send as many at once as it may have open; then it is not read until the next beat,
  /// and the system holds it up. Its next generation goes on from there.
  bool is_throttled() const;
  /// Goes on with the figures of an earlier generation.
  void continue_from(const PeerState& former);

 private:
  struct Side {
    std::map<Tag, NetOperation::Pointer> pending;
    std::optional<std::string> ending;  ///< why nothing more can be posted
  };
  struct Figures {
    bool is_used = false;
    std::int64_t sent = 0;
    std::int64_t received = 0;
    std::int64_t useless = 0;  ///< frames, less those that were forgiven
  };

  static Direction direction_of(const NetOperation& operation) {
    return operation.sending ? Direction::send : Direction::receive;
  }
  Side& side(Direction direction) { return sides_[static_cast<std::size_t>(direction)]; }
  const Side& side(Direction direction) const {
    return sides_[static_cast<std::size_t>(direction)];
  }
  void remove(const NetOperation::Pointer& operation);

  const PeerOptions options_;
  EndedOperations& ended_;
  std::array<Side, 2> sides_;  ///< by direction
  Deadline last_seen_ = {};
  Figures figures_;
};

}  // namespace gossamer
