#include "gossamer/transport/net/peer.h"

#include <vector>

#include "gossamer/transport/request_table.h"

namespace gossamer {

namespace {

// The proofs of a meeting take as much time as so many words.
constexpr std::int64_t kCostOfMeeting = 64;

}  // namespace

const Ending kTooMuch{.here = "the peer says more than it waits for answers to",
                      .there = "the peer does not take so much without an answer"};
const Ending kTwice{.here = "the peer gave a number that it still uses to something else",
                    .there = "the peer was given a number twice"};

void Peer::count_on_from(const Peer& former) {
  used_ = former.used_;
  sent_ = former.sent_;
  received_ = former.received_;
  vain_ = former.vain_ + kCostOfMeeting;
}

bool Peer::refuse(NetOperation& operation, const std::string& reason) const {
  fail(operation, reason);
  return true;
}

bool Peer::refused(NetOperation& operation) {
  if (!is_closed_for(operation)) reach();
  return fail_if_closed(operation);
}

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

bool Peer::is_closed_for(const NetOperation& operation) const {
  return (operation.sending ? closed_sends_ : closed_receives_).has_value();
}

bool Peer::fail_if_closed(NetOperation& operation) const {
  if (!is_closed_for(operation)) return false;
  fail(operation, operation.sending ? *closed_sends_ : *closed_receives_);
  return true;
}

bool Peer::end_sends(const std::string& reason) {
  if (closed_sends_) return false;
  closed_sends_ = reason;
  const bool any = !sends_.empty();
  for (const auto& [tag, send] : sends_) fail(*send, reason);
  sends_.clear();
  forget_sends();
  return any;
}

bool Peer::end_receives(const std::string& reason) {
  if (closed_receives_) return false;
  closed_receives_ = reason;
  const bool any = !receives_.empty();
  for (const auto& [tag, receive] : receives_) fail(*receive, reason);
  receives_.clear();
  forget_receives();
  return any;
}

bool Peer::end(const std::string& reason) {
  const bool any = end_sends(reason);
  return end_receives(reason) || any;
}

bool Peer::beat(Deadline before, Deadline silent_since) {
  vain_ = std::max<std::int64_t>(vain_ - kVainPerBeat, 0);
  const bool any = say_alive(before);
  if (!is_connected() || last_heard_ >= silent_since) return any;
  const auto silence = std::chrono::duration_cast<std::chrono::seconds>(Clock::now() - last_heard_);
  const std::string reason =
      "the peer has been silent for " + std::to_string(silence.count()) + " s";
  std::vector<Pointer> pending;
  for (const auto* side : {&sends_, &receives_}) {
    for (const auto& [tag, operation] : *side) pending.push_back(operation);
  }
  for (const Pointer& operation : pending) {
    release(*operation);
    fail(*operation, reason);
  }
  return any || !pending.empty();
}

}  // namespace gossamer
