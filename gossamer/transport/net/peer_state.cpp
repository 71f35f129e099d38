#include "gossamer/transport/net/peer_state.h"

#include <algorithm>

#include "gossamer/transport/net/frame.h"
#include "gossamer/transport/request_table.h"

namespace gossamer {
namespace {

// The proofs of a handshake take as much time as so many frames.
constexpr std::int64_t kCostOfHandshake = 64;

}  // namespace

void PeerState::add(const NetOperation::Pointer& operation) {
  auto& pending = side(direction_of(*operation)).pending;
  if (!pending.emplace(operation->tag, operation).second) {
    fail_duplicate_tag(operation->sending, options_.peer, operation->tag);
  }
  figures_.is_used = true;
}

NetOperation::Pointer PeerState::find(Direction direction, Tag tag) const {
  const auto& pending = side(direction).pending;
  const auto found = pending.find(tag);
  return found == pending.end() ? nullptr : found->second;
}

std::vector<NetOperation::Pointer> PeerState::pending() const {
  std::vector<NetOperation::Pointer> all;
  for (const Side& side : sides_) {
    for (const auto& [tag, operation] : side.pending) all.push_back(operation);
  }
  return all;
}

void PeerState::remove(const NetOperation::Pointer& operation) {
  auto& pending = side(direction_of(*operation)).pending;
  const auto found = pending.find(operation->tag);
  if (found != pending.end() && found->second == operation) pending.erase(found);
}

void PeerState::complete(const NetOperation::Pointer& send) {
  remove(send);
  send->state = Status::State::done;
  ended_.push_back(send);
}

void PeerState::complete(const NetOperation::Pointer& receive, std::span<const std::byte> content) {
  receive->content = content;
  receive->arrived = Clock::now();
  figures_.received += static_cast<std::int64_t>(content.size());
  complete(receive);
}

void PeerState::fail(const NetOperation::Pointer& operation, const std::string& reason) {
  drop(operation, reason);
  ended_.push_back(operation);
}

void PeerState::drop(const NetOperation::Pointer& operation, const std::string& reason) {
  remove(operation);
  set_failed(*operation, reason);
}

bool PeerState::end(Direction direction, const std::string& reason) {
  Side& ends = side(direction);
  if (ends.ending) return false;
  ends.ending = reason;
  const auto pending = ends.pending;
  for (const auto& [tag, operation] : pending) fail(operation, reason);
  return true;
}

bool PeerState::fail_if_ended(const NetOperation::Pointer& operation) {
  const std::optional<std::string>& ending = side(direction_of(*operation)).ending;
  if (ending) fail(operation, *ending);
  return ending.has_value();
}

std::optional<EdgeBytes> PeerState::traffic() const {
  if (!figures_.is_used) return std::nullopt;
  return EdgeBytes{.peer = options_.peer, .sent = figures_.sent, .received = figures_.received};
}

void PeerState::forgive_useless() {
  figures_.useless = std::max<std::int64_t>(figures_.useless - kUselessPerBeat, 0);
}

bool PeerState::is_throttled() const {
  return figures_.useless > static_cast<std::int64_t>(kMostOpen);
}

void PeerState::continue_from(const PeerState& former) {
  figures_ = former.figures_;
  figures_.useless += kCostOfHandshake;
}

}  // namespace gossamer
