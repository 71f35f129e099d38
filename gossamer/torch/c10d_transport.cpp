#include "gossamer/torch/c10d_transport.h"

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <unordered_map>
#include <utility>
#include <vector>

#include "gossamer/base/errors.h"
#include "gossamer/torch/c10d_link.h"

namespace gossamer {
namespace {

using Operation = C10dOperation;

class C10dTransport final : public Transport {
 public:
  explicit C10dTransport(const C10dOptions& options);
  ~C10dTransport() override;

  using Transport::send;
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

  C10dEdge& edge(int peer) const;
  Request post(Operation operation);
  OperationPtr find(Request request) const;
  bool expire_due(Deadline now);
  Deadline next_deadline() const;

  const int rank_;
  const int workers_;
  const std::chrono::milliseconds linger_;
  const std::shared_ptr<Bell> bell_ = std::make_shared<Bell>();
  std::map<int, std::shared_ptr<C10dLink>> links_;  // by peer
  mutable std::mutex mutex_;                        // guards all below
  Request last_request_ = 0;
  std::unordered_map<Request, OperationPtr> operations_;
  std::set<std::pair<Deadline, Request>> deadlines_;  // of requests that may be pending
  std::unique_ptr<C10dWatch> watch_;                  // last: it looks at the links
};

C10dTransport::C10dTransport(const C10dOptions& options)
    : rank_(options.rank), workers_(options.workers), linger_(options.linger) {
  for (const auto& [peer, at] : options.edges) {
    links_.emplace(peer, std::make_shared<C10dLink>(rank_, peer, at.group, at.peer_rank, bell_));
  }
  std::vector<std::shared_ptr<C10dLink>> links;
  for (const auto& [peer, link] : links_) {
    C10dLink::start(link);
    links.push_back(link);
  }
  watch_ = std::make_unique<C10dWatch>(std::move(links));
}

C10dTransport::~C10dTransport() {
  for (const auto& [peer, link] : links_) link->edge().close(/*leaving=*/true);
  const Deadline patience = Clock::now() + linger_;
  for (const auto& [peer, link] : links_) link->await_end(patience);
  watch_.reset();
  for (const auto& [peer, link] : links_) link->abort();
  const Deadline limit = Clock::now() + std::chrono::seconds(2);
  for (const auto& [peer, link] : links_) link->finish(limit);
}

Request C10dTransport::send(int peer, Tag tag, std::span<const std::byte> payload,
                            Deadline deadline, Owner /*nobody reads in place*/) {
  return post({.sending = true,
               .rank = rank_,
               .peer = peer,
               .tag = tag,
               .payload = payload,
               .landing = {},
               .posted = Clock::now(),
               .deadline = deadline,
               .error = nullptr});
}

Request C10dTransport::receive(int peer, Tag tag, std::span<std::byte> landing, Deadline deadline) {
  return post({.sending = false,
               .rank = rank_,
               .peer = peer,
               .tag = tag,
               .payload = {},
               .landing = landing,
               .posted = Clock::now(),
               .deadline = deadline,
               .error = nullptr});
}

Request C10dTransport::post(Operation operation) {
  C10dEdge& at = edge(operation.peer);
  const auto posted = std::make_shared<Operation>(std::move(operation));
  at.post(posted);
  Request request = 0;
  {
    const std::lock_guard lock(mutex_);
    request = ++last_request_;
    operations_.emplace(request, posted);
    deadlines_.emplace(posted->deadline, request);
  }
  bell_->ring();
  return request;
}

Status C10dTransport::poll(Request request) {
  const OperationPtr operation = find(request);
  C10dEdge& at = edge(operation->peer);
  const Deadline now = Clock::now();
  if (operation->deadline <= now) at.expire(*operation, now);
  return at.status(*operation);
}

void C10dTransport::release(Request request) {
  if (request == 0) return;
  const OperationPtr operation = find(request);
  edge(operation->peer).cancel(*operation);
  const std::lock_guard lock(mutex_);
  operations_.erase(request);
  deadlines_.erase({operation->deadline, request});
}

void C10dTransport::progress(Deadline until) {
  for (;;) {
    if (expire_due(Clock::now())) return;
    const Deadline wake = std::min(until, next_deadline());
    if (bell_->wait(wake) || wake == until) break;
  }
  expire_due(Clock::now());
}

void C10dTransport::close(int peer) { edge(peer).close(/*leaving=*/false); }

TransportInfo C10dTransport::describe() const {
  TransportInfo info{.name = "c10d", .rank = rank_, .workers = workers_, .edges = {}};
  for (const auto& [peer, link] : links_) {
    const C10dEdge::Traffic traffic = link->edge().traffic();
    if (!traffic.used) continue;
    info.edges.push_back({.peer = peer, .sent = traffic.sent, .received = traffic.received});
  }
  return info;
}

C10dEdge& C10dTransport::edge(int peer) const {
  const auto at = links_.find(peer);
  if (at != links_.end()) return at->second->edge();
  const std::string who = "worker " + std::to_string(peer) + " at worker " + std::to_string(rank_) +
                          " of " + std::to_string(workers_);
  if (peer < 0 || peer >= workers_ || peer == rank_) {
    fail_argument({.place = "transport", .what = "a peer must be another worker", .got = who});
  }
  fail_argument({.place = "transport",
                 .what = "there is no edge to this peer",
                 .got = who,
                 .remedy = "give the transport a process group for it"});
}

C10dTransport::OperationPtr C10dTransport::find(Request request) const {
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

bool C10dTransport::expire_due(Deadline now) {
  std::vector<OperationPtr> due;
  {
    const std::lock_guard lock(mutex_);
    while (!deadlines_.empty() && deadlines_.begin()->first <= now) {
      due.push_back(operations_.at(deadlines_.begin()->second));
      deadlines_.erase(deadlines_.begin());
    }
  }
  bool any = false;
  for (const OperationPtr& operation : due) {
    any = edge(operation->peer).expire(*operation, now) || any;
  }
  return any;
}

Deadline C10dTransport::next_deadline() const {
  const std::lock_guard lock(mutex_);
  return deadlines_.empty() ? Deadline::max() : deadlines_.begin()->first;
}

void check_edge(const C10dOptions& options, int peer, const C10dEdgeGroup& at) {
  const std::string who = "the group for worker " + std::to_string(peer);
  if (peer < 0 || peer >= options.workers || peer == options.rank) {
    fail_argument({.place = "transport",
                   .what = "a peer must be another worker",
                   .got = "worker " + std::to_string(peer) + " at worker " +
                          std::to_string(options.rank) + " of " + std::to_string(options.workers)});
  }
  if (!at.group) fail_argument({.place = "transport", .what = who + " is missing"});
  const int size = at.group->getSize();
  if (at.peer_rank < 0 || at.peer_rank >= size || at.peer_rank == at.group->getRank()) {
    fail_argument({.place = "transport",
                   .what = who + " does not contain the peer",
                   .got = "rank " + std::to_string(at.peer_rank) + " in a group of " +
                          std::to_string(size) + " seen by its rank " +
                          std::to_string(at.group->getRank())});
  }
  const std::string backend = at.group->getBackendName();
  if (backend != "gloo") {
    fail_argument({.place = "transport",
                   .what = who + " must carry bytes of CPU tensors point to point",
                   .got = "backend '" + backend + "'",
                   .remedy = "make a group with backend 'gloo' beside it"});
  }
}

}  // namespace

std::unique_ptr<Transport> make_c10d_transport(const C10dOptions& options) {
  if (options.workers < 1 || options.rank < 0 || options.rank >= options.workers) {
    fail_argument(
        {.place = "transport",
         .what = "the rank must be one of the workers",
         .got = "rank " + std::to_string(options.rank) + " of " + std::to_string(options.workers)});
  }
  for (const auto& [peer, at] : options.edges) check_edge(options, peer, at);
  return std::make_unique<C10dTransport>(options);
}

}  // namespace gossamer
