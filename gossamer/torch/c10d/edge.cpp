#include "gossamer/torch/c10d/edge.h"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "gossamer/transport/request_table.h"

namespace gossamer {
namespace {

std::size_t size_of(const C10dOperation& operation) {
  return operation.sending ? operation.payload.size() : operation.landing.size();
}

std::string why_late(const C10dOperation& operation) {
  const std::string peer = "worker " + std::to_string(operation.peer);
  if (operation.moved > 0) {
    return std::to_string(operation.moved) + " of " + std::to_string(size_of(operation)) +
           " bytes have been " + (operation.sending ? "sent" : "received");
  }
  if (!operation.sending) return "nothing came from " + peer;
  return operation.id != 0 ? "the link is busy" : peer + " has not asked for it";
}

void check(bool condition, const char* what) {
  if (!condition) throw std::runtime_error(std::string("the peer sent a frame with ") + what);
}

}  // namespace

C10dEdge::C10dEdge(int rank, int peer, std::shared_ptr<WakeUp> wake_up)
    : rank_(rank), peer_(peer), wake_up_(std::move(wake_up)) {}

void C10dEdge::post(const OperationPtr& operation) {
  {
    const Lock lock(mutex_);
    if (closed_) {
      fail(*operation, *closed_);
      return;
    }
    auto& side = operation->sending ? sends_ : receives_;
    if (!side.emplace(operation->tag, operation).second) {
      fail_duplicate_tag(operation->sending, operation->peer, operation->tag);
    }
    traffic_.used = true;
    if (operation->sending) {
      match(operation->tag);
    } else {
      operation->id = ++last_id_;
      receives_by_id_.emplace(operation->id, operation);
      notices_.push_back({.kind = FrameKind::ready,
                          .id = operation->id,
                          .tag = operation->tag,
                          .total = operation->landing.size()});
    }
  }
  frames_.notify_one();
}

/// Starts the transfer when the peer wants what is to be sent.
void C10dEdge::match(Tag tag) {
  const auto send = sends_.find(tag);
  const auto wanted = wanted_.find(tag);
  if (send == sends_.end() || wanted == wanted_.end()) return;
  const OperationPtr operation = send->second;
  check(operation->id == 0, "a second wish for one payload");
  const auto [id, size] = wanted->second;
  wanted_.erase(wanted);
  if (size == operation->payload.size()) {
    operation->id = id;
    operation->moved = 0;
    transfers_.push_back(operation);
    return;
  }
  sends_.erase(send);
  fail(*operation, size_mismatch(operation->payload.size(), size));
  notices_.push_back(
      {.kind = FrameKind::refuse, .id = id, .tag = tag, .total = operation->payload.size()});
}

bool C10dEdge::expire(C10dOperation& operation, Deadline now) {
  {
    Lock lock(mutex_);
    copied_.wait(lock, [&] { return !operation.copying; });
    if (operation.state != Status::State::pending || now < operation.deadline) return false;
    fail(operation, {"deadline passed; " + why_late(operation), Fault::late});
    withdraw(operation);
  }
  frames_.notify_one();
  return true;
}

void C10dEdge::cancel(C10dOperation& operation) {
  {
    Lock lock(mutex_);
    copied_.wait(lock, [&] { return !operation.copying; });
    if (operation.state != Status::State::pending) return;
    fail(operation, {"released before it ended", Fault::other});
    withdraw(operation);
  }
  frames_.notify_one();
}

/// Leaves the other side as if the operation had never been posted.
void C10dEdge::withdraw(C10dOperation& operation) {
  const Tag tag = operation.tag;
  if (operation.sending) {
    if (operation.id != 0) {
      wanted_[tag] = {.id = operation.id, .size = operation.payload.size()};
      std::erase_if(transfers_, [&](const OperationPtr& other) { return other->tag == tag; });
    }
    sends_.erase(tag);
    return;
  }
  const auto untold = std::find_if(notices_.begin(), notices_.end(), [&](const C10dFrameHeader& f) {
    return f.kind == FrameKind::ready && f.id == operation.id;
  });
  if (untold != notices_.end()) {
    notices_.erase(untold);
  } else {
    notices_.push_back({.kind = FrameKind::cancel, .id = operation.id, .tag = tag});
  }
  receives_by_id_.erase(operation.id);
  receives_.erase(tag);
}

Status C10dEdge::status(const C10dOperation& operation) const {
  const Lock lock(mutex_);
  Status status{.state = operation.state, .payload = {}, .error = operation.error};
  if (status.state == Status::State::done && !operation.sending) {
    status.payload = operation.landing;
    status.arrived = operation.ended;
  }
  return status;
}

void C10dEdge::close(bool leaving) {
  {
    Lock lock(mutex_);
    if (closed_) return;
    end_all(lock,
            leaving ? "this worker's transport was destroyed" : "this worker closed the peer");
    notices_.push_back({.kind = FrameKind::close, .id = leaving ? 1U : 0U});
  }
  frames_.notify_one();
}

void C10dEdge::break_off(const std::string& reason) {
  {
    Lock lock(mutex_);
    broken_ = true;
    if (!closed_) end_all(lock, reason);
  }
  frames_.notify_one();
}

void C10dEdge::end_all(Lock& lock, const Failure& reason) {
  closed_ = reason;  // from here on nothing new is posted or copied
  copied_.wait(lock, [&] { return copies_ == 0; });
  for (auto* side : {&sends_, &receives_}) {
    for (const auto& [tag, operation] : *side) fail(*operation, reason);
    side->clear();
  }
  receives_by_id_.clear();
  wanted_.clear();
  transfers_.clear();
  notices_.clear();
  wake_up_->notify();
}

bool C10dEdge::await_frame() {
  Lock lock(mutex_);
  frames_.wait(lock,
               [&] { return broken_ || wrote_close_ || !notices_.empty() || !transfers_.empty(); });
  return !broken_ && !wrote_close_;
}

std::size_t C10dEdge::take_frame(std::span<std::byte> frame) {
  Lock lock(mutex_);
  if (notices_.empty()) return transfers_.empty() || closed_ ? 0 : take_data(lock, frame);
  const C10dFrameHeader header = notices_.front();
  notices_.pop_front();
  wrote_close_ = wrote_close_ || header.kind == FrameKind::close;
  put_header(frame, header);
  return sizeof(header);
}

std::size_t C10dEdge::take_data(Lock& lock, std::span<std::byte> frame) {
  const OperationPtr operation = transfers_.front();
  const std::uint64_t id = operation->id;
  const std::size_t offset = operation->moved;
  const std::size_t length = std::min(kFrameDataBytes, operation->payload.size() - offset);
  std::byte* data = put_header(frame, {.kind = FrameKind::data,
                                       .id = id,
                                       .tag = operation->tag,
                                       .total = operation->payload.size(),
                                       .offset = offset,
                                       .length = length});
  copy_unlocked(lock, *operation, data, operation->payload.data() + offset, length);
  // The peer may have called it back meanwhile, and may even want it again.
  if (!transfers_.empty() && transfers_.front() == operation && operation->id == id) {
    operation->moved += length;
    if (operation->moved == operation->payload.size()) {
      transfers_.pop_front();
      sends_.erase(operation->tag);
      traffic_.sent += static_cast<std::int64_t>(operation->moved);
      end(*operation, Status::State::done);
    }
  }
  return sizeof(C10dFrameHeader) + length;
}

void C10dEdge::copy_unlocked(Lock& lock, C10dOperation& operation, std::byte* to,
                             const std::byte* from, std::size_t bytes) {
  if (bytes == 0) return;
  operation.copying = true;
  ++copies_;
  lock.unlock();
  std::memcpy(to, from, bytes);
  lock.lock();
  operation.copying = false;
  --copies_;
  copied_.notify_all();
}

void C10dEdge::hand_over(std::span<const std::byte> frame) {
  const C10dFrameHeader header = get_header(frame);
  check(header.magic == C10dFrameHeader::kMagic, "an unknown first word");
  check(header.length <= frame.size() - sizeof(header), "more data than fit");
  {
    Lock lock(mutex_);
    if (header.kind == FrameKind::close) {
      peer_closed_ = true;
      if (!closed_) {
        end_all(lock, said_by_peer(header.id == 1 ? "the peer left" : kClosedByPeer));
        notices_.push_back({.kind = FrameKind::close, .id = header.id});
      }
    } else if (!closed_) {
      switch (header.kind) {
        case FrameKind::ready:
          wanted_[header.tag] = {.id = header.id, .size = header.total};
          match(header.tag);
          break;
        case FrameKind::cancel:
          call_back(header.tag, header.id);
          break;
        case FrameKind::refuse:
          refuse(header.id, header.total);
          break;
        case FrameKind::data:
          land(lock, header, frame.data() + sizeof(header));
          break;
        case FrameKind::close:
          break;
        default:  // not -Wswitch's business: the number came from another process
          check(false, "an unknown kind");
      }
    }
  }
  frames_.notify_one();
}

/// The peer's receive `id` is over: its send, if any, waits for another.
void C10dEdge::call_back(Tag tag, std::uint64_t id) {
  const auto wanted = wanted_.find(tag);
  if (wanted != wanted_.end() && wanted->second.id == id) wanted_.erase(wanted);
  const auto transfer = std::find_if(transfers_.begin(), transfers_.end(),
                                     [&](const OperationPtr& send) { return send->id == id; });
  if (transfer == transfers_.end()) return;
  (*transfer)->id = 0;
  (*transfer)->moved = 0;
  transfers_.erase(transfer);
}

void C10dEdge::refuse(std::uint64_t id, std::uint64_t sent_bytes) {
  const auto found = receives_by_id_.find(id);
  if (found == receives_by_id_.end()) return;  // given up meanwhile
  const OperationPtr operation = found->second;
  receives_by_id_.erase(found);
  receives_.erase(operation->tag);
  fail(*operation, size_mismatch(sent_bytes, operation->landing.size()));
}

void C10dEdge::land(Lock& lock, const C10dFrameHeader& header, const std::byte* data) {
  const auto found = receives_by_id_.find(header.id);
  if (found == receives_by_id_.end()) return;  // given up meanwhile
  const OperationPtr operation = found->second;
  check(header.total == operation->landing.size(), "a size that was not asked for");
  // A send that was withdrawn half-way begins anew with the next of the same tag.
  check(header.offset == 0 || header.offset == operation->moved, "data out of order");
  check(header.length <= header.total - header.offset, "more data than were asked for");
  copy_unlocked(lock, *operation, operation->landing.data() + header.offset, data, header.length);
  operation->moved = header.offset + header.length;
  if (operation->moved < operation->landing.size()) return;
  receives_by_id_.erase(header.id);
  receives_.erase(operation->tag);
  traffic_.received += static_cast<std::int64_t>(operation->moved);
  end(*operation, Status::State::done);
}

bool C10dEdge::peer_closed() const {
  const Lock lock(mutex_);
  return peer_closed_;
}

C10dEdge::Traffic C10dEdge::traffic() const {
  const Lock lock(mutex_);
  return traffic_;
}

void C10dEdge::end(C10dOperation& operation, Status::State state) {
  operation.state = state;
  operation.ended = Clock::now();
  wake_up_->notify();
}

void C10dEdge::fail(C10dOperation& operation, const Failure& failure) {
  operation.error = failure_of(operation, failure, Clock::now());
  end(operation, Status::State::failed);
}

}  // namespace gossamer
