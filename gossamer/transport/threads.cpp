#include "gossamer/transport/threads.h"

#include <algorithm>
#include <mutex>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>

#include "gossamer/base/errors.h"
#include "gossamer/transport/fabric.h"

namespace gossamer {
namespace {

class ThreadsTransport final : public Transport {
 public:
  ThreadsTransport(std::shared_ptr<Fabric> fabric, int rank)
      : fabric_(std::move(fabric)), rank_(rank) {}
  ~ThreadsTransport() override;

  Request send(int peer, Tag tag, std::span<const std::byte> payload, Deadline deadline,
               Owner owner) override;
  Request receive(int peer, Tag tag, std::span<std::byte> landing, Deadline deadline) override;
  Status poll(Request request) override;
  void release(Request request) override;
  void progress(Deadline until) override;
  void close(int peer) override;
  TransportInfo describe() const override;

 private:
  using OperationPtr = std::shared_ptr<Operation>;

  void check_peer(int peer) const;
  Request post(Operation operation);
  OperationPtr find(Request request) const;
  bool expire(Operation& operation, Deadline now);
  bool expire_due(Deadline now);
  Deadline next_deadline() const;

  const std::shared_ptr<Fabric> fabric_;
  const int rank_;
  mutable std::mutex mutex_;  // guards all below
  Request last_request_ = 0;
  std::unordered_map<Request, OperationPtr> operations_;
  std::set<std::pair<Deadline, Request>> deadlines_;  // of requests that may be pending
};

ThreadsTransport::~ThreadsTransport() {
  const CloseReasons reasons{"this worker's transport was destroyed", "the peer left"};
  for (int peer = 0; peer < fabric_->workers(); ++peer) {
    if (peer != rank_) fabric_->close(rank_, peer, reasons);
  }
}

Request ThreadsTransport::send(int peer, Tag tag, std::span<const std::byte> payload,
                               Deadline deadline, Owner owner) {
  return post({.sending = true,
               .rank = rank_,
               .peer = peer,
               .tag = tag,
               .payload = payload,
               .owner = std::move(owner),
               .landing = {},
               .content = {},
               .posted = Clock::now(),
               .deadline = deadline,
               .error = nullptr});
}

Request ThreadsTransport::receive(int peer, Tag tag, std::span<std::byte> landing,
                                  Deadline deadline) {
  return post({.sending = false,
               .rank = rank_,
               .peer = peer,
               .tag = tag,
               .payload = {},
               .owner = nullptr,
               .landing = landing,
               .content = {},
               .posted = Clock::now(),
               .deadline = deadline,
               .error = nullptr});
}

Status ThreadsTransport::poll(Request request) {
  const OperationPtr operation = find(request);
  const Deadline now = Clock::now();
  if (operation->deadline <= now) expire(*operation, now);
  return fabric_->edge_of(*operation).status(*operation);
}

void ThreadsTransport::release(Request request) {
  if (request == 0) return;
  const OperationPtr operation = find(request);
  if (fabric_->edge_of(*operation).release(*operation)) fabric_->bell(operation->peer).ring();
  const std::lock_guard lock(mutex_);
  operations_.erase(request);
  deadlines_.erase({operation->deadline, request});
}

void ThreadsTransport::progress(Deadline until) {
  for (;;) {
    if (expire_due(Clock::now())) return;
    const Deadline wake = std::min(until, next_deadline());
    if (fabric_->bell(rank_).wait(wake) || wake == until) break;
  }
  expire_due(Clock::now());
}

void ThreadsTransport::close(int peer) {
  check_peer(peer);
  fabric_->close(rank_, peer, {"this worker closed the peer", "the peer closed the connection"});
}

TransportInfo ThreadsTransport::describe() const {
  TransportInfo info{.name = "threads",
                     .rank = rank_,
                     .workers = fabric_->workers(),
                     .serves_in_place = true,
                     .edges = {}};
  for (int peer = 0; peer < info.workers; ++peer) {
    const Edge::Traffic out = fabric_->edge(rank_, peer).traffic();
    const Edge::Traffic in = fabric_->edge(peer, rank_).traffic();
    if (out.used || in.used) {
      info.edges.push_back({.peer = peer, .sent = out.bytes, .received = in.bytes});
    }
  }
  return info;
}

void ThreadsTransport::check_peer(int peer) const {
  if (peer >= 0 && peer < fabric_->workers() && peer != rank_) return;
  fail_argument({.place = "transport",
                 .what = "a peer must be another worker",
                 .got = "worker " + std::to_string(peer) + " at worker " + std::to_string(rank_) +
                        " of " + std::to_string(fabric_->workers())});
}

Request ThreadsTransport::post(Operation operation) {
  check_peer(operation.peer);
  const auto posted = std::make_shared<Operation>(std::move(operation));
  const bool ended = fabric_->edge_of(*posted).post(posted);
  Request request = 0;
  {
    const std::lock_guard lock(mutex_);
    request = ++last_request_;
    operations_.emplace(request, posted);
    if (!ended) deadlines_.emplace(posted->deadline, request);
  }
  fabric_->bell(rank_).ring();
  if (ended) fabric_->bell(posted->peer).ring();
  return request;
}

ThreadsTransport::OperationPtr ThreadsTransport::find(Request request) const {
  {
    const std::lock_guard lock(mutex_);
    const auto at = operations_.find(request);
    if (at != operations_.end()) return at->second;
  }
  fail_argument({.place = "transport",
                 .what = "no such request",
                 .got = std::to_string(request),
                 .remedy = "a request ends with its release"});
}

bool ThreadsTransport::expire(Operation& operation, Deadline now) {
  if (!fabric_->edge_of(operation).expire(operation, now)) return false;
  fabric_->bell(rank_).ring();
  return true;
}

bool ThreadsTransport::expire_due(Deadline now) {
  std::vector<OperationPtr> due;
  {
    const std::lock_guard lock(mutex_);
    while (!deadlines_.empty() && deadlines_.begin()->first <= now) {
      due.push_back(operations_.at(deadlines_.begin()->second));
      deadlines_.erase(deadlines_.begin());
    }
  }
  bool any = false;
  for (const OperationPtr& operation : due) any = expire(*operation, now) || any;
  return any;
}

Deadline ThreadsTransport::next_deadline() const {
  const std::lock_guard lock(mutex_);
  return deadlines_.empty() ? Deadline::max() : deadlines_.begin()->first;
}

}  // namespace

ThreadsFabric make_threads_fabric(const ClusterSpec& cluster, const ThreadsOptions& options) {
  const auto fabric = std::make_shared<Fabric>(cluster, options);
  ThreadsFabric made;
  for (int rank = 0; rank < fabric->workers(); ++rank) {
    made.transports.push_back(std::make_unique<ThreadsTransport>(fabric, rank));
  }
  made.link_bytes = [fabric] { return fabric->link_bytes(); };
  made.set_link = [fabric](int host, const LinkSpec& link) { fabric->set_link(host, link); };
  return made;
}

std::vector<std::unique_ptr<Transport>> make_threads_transports(const ClusterSpec& cluster,
                                                                const ThreadsOptions& options) {
  return make_threads_fabric(cluster, options).transports;
}

}  // namespace gossamer
