#include "gossamer/transport/edge.h"

#include <utility>

#include "gossamer/kernels/copy.h"
#include "gossamer/transport/memory.h"
#include "gossamer/transport/request_table.h"

namespace gossamer {
bool Edge::post(const std::shared_ptr<Operation>& operation) {
  Lock lock(mutex_);
  if (closed_) {
    const auto& reason = operation->sending ? closed_->to_sender : closed_->to_receiver;
    fail(*operation, reason, operation->posted);
    return true;
  }
  Match& match = matches_[operation->tag];
  auto& side = operation->sending ? match.send : match.receive;
  if (side) fail_duplicate_tag(operation->sending, operation->peer, operation->tag);
  side = operation;
  traffic_.used = true;
  if (operation->sending) {
    const auto bytes = static_cast<std::int64_t>(operation->payload.size());
    const Cargo cargo{from_, to_, operation->tag};
    match.flight = emulator_ ? emulator_->launch(cargo, bytes) : 0;
    match.arrived = match.flight == 0;
  }
  return match.send && match.receive && meet(lock, match);
}

bool Edge::meet(Lock& lock, Match& match) {
  Operation& send = *match.send;
  Operation& receive = *match.receive;
  const Tag tag = send.tag;
  if (send.payload.size() != receive.landing.size()) {
    const Deadline now = Clock::now();
    const Failure reason = size_mismatch(send.payload.size(), receive.landing.size());
    fail(send, reason, now);
    fail(receive, reason, now);
    if (!match.arrived) emulator_->cancel(match.flight);
    matches_.erase(tag);
    return true;
  }
  if (copier_of(send.owner, lends_) == Copier::nobody) {
    match.lent = true;
    return finish_if_ready(match, tag);
  }
  match.copying = true;
  ++copies_in_progress_;
  lock.unlock();
  copy_streaming(receive.landing.data(), send.payload.data(), send.payload.size());
  lock.lock();
  match.copying = false;  // nobody removes a match that is being copied
  match.copied = true;
  --copies_in_progress_;
  copied_.notify_all();
  return finish_if_ready(match, tag);
}

bool Edge::arrive(Tag tag, FlightId flight) {
  const Lock lock(mutex_);
  const auto at = matches_.find(tag);
  if (at == matches_.end() || at->second.flight != flight) return false;  // cancelled
  at->second.arrived = true;
  return finish_if_ready(at->second, tag);
}

bool Edge::finish_if_ready(Match& match, Tag tag) {
  if (!(match.copied || match.lent) || !match.arrived) return false;
  Operation& receive = *match.receive;
  receive.state = Status::State::done;
  receive.arrived = Clock::now();
  receive.content = match.lent ? match.send->payload : receive.landing;
  if (match.lent) receive.owner = match.send->owner;
  traffic_.bytes += static_cast<std::int64_t>(match.send->payload.size());
  if (match.lent) return true;  // the match stays until the receive is released
  match.send->state = Status::State::done;
  matches_.erase(tag);
  return true;
}

bool Edge::give_back(const Operation& receive) {
  const auto at = matches_.find(receive.tag);
  if (at == matches_.end() || at->second.receive.get() != &receive) return false;
  at->second.send->state = Status::State::done;
  matches_.erase(at);
  return true;
}

bool Edge::expire(Operation& operation, Deadline now) {
  Lock lock(mutex_);
  wait_for_copy(lock, operation);
  if (operation.state != Status::State::pending || now < operation.deadline) return false;
  const Match& match = matches_.at(operation.tag);
  if (match.lent && match.arrived) return false;
  const bool met = match.send && match.receive;
  const std::string peer = "worker " + std::to_string(operation.peer);
  const std::string reason = met                 ? "the payload is still on the link"
                             : operation.sending ? peer + " posted no receive"
                                                 : peer + " posted no send";
  fail(operation, {"deadline passed; " + reason, Fault::late}, now);
  withdraw(operation);
  return true;
}

bool Edge::release(Operation& operation) {
  Lock lock(mutex_);
  wait_for_copy(lock, operation);
  if (operation.state != Status::State::pending) {
    return !operation.sending && give_back(operation);
  }
  fail(operation, {"released before it ended", Fault::other}, Clock::now());
  withdraw(operation);
  return false;
}

bool Edge::close(const CloseReasons& reasons) {
  Lock lock(mutex_);
  if (closed_) return false;
  closed_ = reasons;  // from here on nothing new is posted or copied
  copied_.wait(lock, [&] { return copies_in_progress_ == 0; });
  const Deadline now = Clock::now();
  const bool any = !matches_.empty();
  for (auto& [tag, match] : matches_) {
    if (match.send) fail(*match.send, reasons.to_sender, now);
    if (match.receive && match.receive->state == Status::State::pending) {
      fail(*match.receive, reasons.to_receiver, now);
    }
    if (match.send && !match.arrived) emulator_->cancel(match.flight);
  }
  matches_.clear();
  return any;
}

Status Edge::status(const Operation& operation) const {
  const Lock lock(mutex_);
  return {.state = operation.state,
          .payload = operation.content,
          .error = operation.error,
          .arrived = operation.arrived};
}

Edge::Traffic Edge::traffic() const {
  const Lock lock(mutex_);
  return traffic_;
}

void Edge::wait_for_copy(Lock& lock, const Operation& operation) {
  copied_.wait(lock, [&] {
    if (operation.state != Status::State::pending) return true;
    return !matches_.at(operation.tag).copying;
  });
}

void Edge::withdraw(Operation& operation) {
  const auto at = matches_.find(operation.tag);
  Match& match = at->second;
  if (match.lent && match.arrived) {  // the receive has the payload, and its owner
    matches_.erase(at);
    return;
  }
  match.copied = match.lent = false;
  if (operation.sending) {
    if (!match.arrived) emulator_->cancel(match.flight);
    match.flight = 0;
    match.arrived = false;
    match.send.reset();
  } else {
    match.receive.reset();
  }
  if (!match.send && !match.receive) matches_.erase(at);
}

void Edge::fail(Operation& operation, const Failure& failure, Deadline now) const {
  operation.state = Status::State::failed;
  operation.error = failure_of(operation, failure, now);
}

}  // namespace gossamer
