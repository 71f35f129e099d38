#pragma once
/// What transports that keep their own requests have in common: the table of them, and its errors.

#include <algorithm>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "gossamer/base/errors.h"
#include "gossamer/transport/transport.h"

namespace gossamer {

/// Throws std::invalid_argument: a request with this tag is pending.
[[noreturn]] void fail_duplicate_tag(bool sending, int peer, Tag tag);
/// Throws std::invalid_argument: there is no such request.
[[noreturn]] void fail_no_request(Request request);
/// Throws std::invalid_argument unless `peer` is another of the workers.
void check_peer(int peer, int rank, int workers);

/// Why an operation failed.
struct Failure {
  Failure(std::string why, Fault kind = Fault::lost, std::optional<int> silent_worker = {})
      : reason(std::move(why)), fault(kind), unheard(silent_worker) {}
  Failure(const char* why) : Failure(std::string(why)) {}

  std::string reason;
  Fault fault;
  std::optional<int> unheard = {};  ///< see TransportError::Details
};

/// Why what is under way with a peer ends that this worker closes.
inline constexpr const char* kClosedHere = "this worker closed the peer";
/// What a worker says to the peer that it closes, or expels.
inline constexpr const char* kClosedByPeer = "the peer closed the connection";
inline constexpr const char* kReplacedByPeer = "a later generation of this worker is there";
inline constexpr const char* kExpelledByPeer = "the peer had heard nothing of this worker for long";
/// What a peer says as it ends the connection.
Failure said_by_peer(std::string reason);
/// An empty payload, or an empty room for one, refuses the transfer; see Transport.
Failure size_mismatch(std::size_t sent, std::size_t expected);

/// The TransportError of an operation (with rank, peer, sending, posted) that failed at `now`.
std::exception_ptr transport_failure(int rank, int peer, bool sending, double elapsed_s,
                                     const Failure& failure);
template <class Operation>
std::exception_ptr failure_of(const Operation& operation, const Failure& failure, Deadline now) {
  const std::chrono::duration<double> elapsed = now - operation.posted;
  return transport_failure(operation.rank, operation.peer, operation.sending, elapsed.count(),
                           failure);
}

/// The operations of one transport by request, and when they are due. An Operation has a
/// `deadline`. All functions may be called from any thread.
template <class Operation>
class RequestTable {
 public:
  using Pointer = std::shared_ptr<Operation>;

  /// The new request's number; `may_be_pending` if it is to become due.
  Request add(const Pointer& operation, bool may_be_pending) {
    const std::lock_guard lock(mutex_);
    const Request request = ++last_request_;
    operations_.emplace(request, operation);
    if (may_be_pending) deadlines_.emplace(operation->deadline, request);
    return request;
  }
  /// Throws std::invalid_argument for a number that is not in the table.
  Pointer find(Request request) const {
    {
      const std::lock_guard lock(mutex_);
      const auto at = operations_.find(request);
      if (at != operations_.end()) return at->second;
    }
    fail_no_request(request);
  }
  void remove(Request request, const Operation& operation) {
    const std::lock_guard lock(mutex_);
    operations_.erase(request);
    deadlines_.erase({operation.deadline, request});
  }
  /// Those whose deadline is not after `now`, each only once.
  std::vector<Pointer> take_due(Deadline now) {
    std::vector<Pointer> due;
    const std::lock_guard lock(mutex_);
    while (!deadlines_.empty() && deadlines_.begin()->first <= now) {
      due.push_back(operations_.at(deadlines_.begin()->second));
      deadlines_.erase(deadlines_.begin());
    }
    return due;
  }
  Deadline next_deadline() const {
    const std::lock_guard lock(mutex_);
    return deadlines_.empty() ? Deadline::max() : deadlines_.begin()->first;
  }

 private:
  mutable std::mutex mutex_;  // guards all below
  Request last_request_ = 0;
  std::unordered_map<Request, Pointer> operations_;
  std::set<std::pair<Deadline, Request>> deadlines_;  // of requests that may be pending
};

/// Transport::progress with a WakeUp that is notified when a request ends: expire_due(now) fails
/// what is due and tells whether it did.
template <class WakeUp, class Table, class ExpireDue>
void progress_until_woken(WakeUp& wake_up, const Table& table, Deadline until,
                          const ExpireDue& expire_due) {
  for (;;) {
    if (expire_due(Clock::now())) return;
    const Deadline wake = std::min(until, table.next_deadline());
    if (wake_up.wait(wake) || wake == until) break;
  }
  expire_due(Clock::now());
}

}  // namespace gossamer
