#include "gossamer/transport/net/pending_operations.h"

#include "gossamer/transport/request_table.h"

namespace gossamer {

void PendingOperations::add(const Pointer& operation) {
  auto& pending = side(direction_of(*operation)).pending;
  if (!pending.emplace(operation->tag, operation).second) {
    fail_duplicate_tag(operation->sending, traffic_.peer, operation->tag);
  }
  is_used_ = true;
}

NetOperation::Pointer PendingOperations::find(Direction direction, Tag tag) const {
  const auto& pending = side(direction).pending;
  const auto found = pending.find(tag);
  return found == pending.end() ? nullptr : found->second;
}

std::vector<NetOperation::Pointer> PendingOperations::all() const {
  std::vector<Pointer> operations;
  for (const Side& side : sides_) {
    for (const auto& [tag, operation] : side.pending) operations.push_back(operation);
  }
  return operations;
}

void PendingOperations::remove(const Pointer& operation) {
  auto& pending = side(direction_of(*operation)).pending;
  const auto found = pending.find(operation->tag);
  if (found != pending.end() && found->second == operation) pending.erase(found);
}

void PendingOperations::complete(const Pointer& send) {
  remove(send);
  send->state = Status::State::done;
  ended_operations_.push_back(send);
}

void PendingOperations::complete(const Pointer& receive, std::span<const std::byte> content) {
  receive->content = content;
  receive->arrived = Clock::now();
  traffic_.received += static_cast<std::int64_t>(content.size());
  complete(receive);
}

void PendingOperations::fail(const Pointer& operation, const Failure& failure) {
  drop(operation, failure);
  ended_operations_.push_back(operation);
}

void PendingOperations::drop(const Pointer& operation, const Failure& failure) {
  remove(operation);
  set_failed(*operation, failure);
}

bool PendingOperations::end(Direction direction, const Failure& reason) {
  Side& ends = side(direction);
  if (ends.ending) return false;
  ends.ending = reason;
  const auto pending = ends.pending;
  for (const auto& [tag, operation] : pending) fail(operation, reason);
  return true;
}

bool PendingOperations::fail_if_ended(const Pointer& operation) {
  const std::optional<Failure>& ending = side(direction_of(*operation)).ending;
  if (ending) fail(operation, *ending);
  return ending.has_value();
}

std::optional<EdgeBytes> PendingOperations::traffic() const {
  return is_used_ ? std::optional(traffic_) : std::nullopt;
}

void PendingOperations::continue_from(const PendingOperations& former) {
  is_used_ = former.is_used_;
  traffic_ = former.traffic_;
}

}  // namespace gossamer
