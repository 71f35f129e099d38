#pragma once
/// PendingOperations: the sends to and the receives from one peer that have not ended.

#include <array>
#include <cstddef>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "gossamer/transport/net/net_operation.h"

namespace gossamer {

enum class Direction { send, receive };

/// And the reasons why no more can be posted, and what was exchanged. Every operation that ends
/// here goes into the list of the transport, so that no thread that waits for it is forgotten. Not
/// for several threads at once.
class PendingOperations {
 public:
  using Pointer = NetOperation::Pointer;

  PendingOperations(int peer, EndedOperations& ended)
      : traffic_({.peer = peer}), ended_operations_(ended) {}

  /// Throws std::invalid_argument if one with its tag is pending.
  void add(const Pointer& operation);
  /// The operation with this tag; null without one.
  Pointer find(Direction direction, Tag tag) const;
  std::vector<Pointer> all() const;
  /// A send is done.
  void complete(const Pointer& send);
  /// A receive is done, and this is where its bytes are.
  void complete(const Pointer& receive, std::span<const std::byte> content);
  void fail(const Pointer& operation, const Failure& failure);
  /// Fails it without telling anybody: its owner gives it up.
  void drop(const Pointer& operation, const Failure& failure);

  /// Nothing more is sent, or received, for this reason: fails what is pending. False if the
  /// direction had ended before; the first reason counts.
  bool end(Direction direction, const Failure& reason);
  bool has_ended(Direction direction) const { return side(direction).ending.has_value(); }
  /// Both directions have.
  bool has_ended() const { return has_ended(Direction::send) && has_ended(Direction::receive); }
  bool has_ended_by(Fault fault) const {
    const auto& ending = side(Direction::receive).ending;
    return ending && ending->fault == fault;
  }
  /// Fails an operation, with the reason, where its direction has ended.
  bool fail_if_ended(const Pointer& operation);

  void count_sent(std::size_t bytes) { traffic_.sent += static_cast<std::int64_t>(bytes); }
  /// Nothing before the first operation.
  std::optional<EdgeBytes> traffic() const;
  /// Goes on with the traffic of an earlier generation of the peer.
  void continue_from(const PendingOperations& former);

 private:
  struct Side {
    std::map<Tag, Pointer> pending;
    std::optional<Failure> ending;  ///< why nothing more can be posted
  };

  static Direction direction_of(const NetOperation& operation) {
    return operation.sending ? Direction::send : Direction::receive;
  }
  Side& side(Direction direction) { return sides_[static_cast<std::size_t>(direction)]; }
  const Side& side(Direction direction) const {
    return sides_[static_cast<std::size_t>(direction)];
  }
  void remove(const Pointer& operation);

  std::array<Side, 2> sides_;  ///< by direction
  bool is_used_ = false;
  EdgeBytes traffic_;
  EndedOperations& ended_operations_;
};

}  // namespace gossamer
