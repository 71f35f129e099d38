#include "gossamer/transport/net/peer.h"

#include "gossamer/transport/request_table.h"

namespace gossamer {

void Peer::add_pending(const Pointer& operation) {
  auto& pending = operation->sending ? sends_ : receives_;
  if (!pending.emplace(operation->tag, operation).second) {
    fail_duplicate_tag(operation->sending, peer_, operation->tag);
  }
  used_ = true;
}

void Peer::fail(NetOperation& operation, const std::string& reason) const {
  operation.state = Status::State::failed;
  operation.error = failure_of(operation, reason, Clock::now());
}

bool Peer::expire(NetOperation& operation, Deadline now) {
  const bool is_lent = operation.taken && operation.lends;
  if (operation.state != Status::State::pending || is_lent || now < operation.deadline) {
    return false;
  }
  const bool is_moving = operation.taken || operation.landed > 0;
  const std::string peer = "worker " + std::to_string(peer_);
  const std::string reason = is_moving           ? "the payload is still on the link"
                             : operation.sending ? peer + " posted no receive"
                                                 : peer + " posted no send";
  release(operation);
  fail(operation, "deadline passed; " + reason);
  return true;
}

bool Peer::fail_pending(const std::string& reason) {
  const bool any = !sends_.empty() || !receives_.empty();
  for (const auto& [tag, send] : sends_) fail(*send, reason);
  for (const auto& [tag, receive] : receives_) fail(*receive, reason);
  sends_.clear();
  receives_.clear();
  forget_pending();
  return any;
}

bool Peer::end(const std::string& reason) {
  if (closed_) return false;
  closed_ = reason;
  return fail_pending(reason);
}

bool Peer::beat(Deadline before, Deadline silent_since) {
  say_alive(before);
  const bool is_silent = is_connected() && !closed_ && last_heard_ < silent_since;
  if (!is_silent || (sends_.empty() && receives_.empty())) return false;
  const auto silence = std::chrono::duration_cast<std::chrono::seconds>(Clock::now() - last_heard_);
  return fail_pending("the peer has been silent for " + std::to_string(silence.count()) + " s");
}

}  // namespace gossamer
