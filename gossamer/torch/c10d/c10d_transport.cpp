#include "gossamer/torch/c10d/c10d_transport.h"

#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "gossamer/base/errors.h"
#include "gossamer/torch/c10d/link.h"
#include "gossamer/transport/request_table.h"

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
  C10dEdge& edge(int peer) const;
  Request post(Operation operation);
  bool expire_due(Deadline now);

  const int rank_;
  const int workers_;
  const std::chrono::milliseconds linger_;
  const std::shared_ptr<WakeUp> wake_up_ = std::make_shared<WakeUp>();
  std::map<int, std::shared_ptr<C10dLink>> links_;  // by peer
  RequestTable<Operation> requests_;
  const StandstillWatch standstills_;
  std::unique_ptr<C10dWatch> watch_;  // last: it looks at the links
};

C10dTransport::C10dTransport(const C10dOptions& options)
    : rank_(options.rank), workers_(options.workers), linger_(options.linger) {
  for (const auto& [peer, at] : options.edges) {
    links_.emplace(peer, std::make_shared<C10dLink>(rank_, peer, at.group, at.peer_rank, wake_up_));
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
  const Request request = requests_.add(posted, true);
  wake_up_->notify();
  return request;
}

Status C10dTransport::poll(Request request) {
  const auto operation = requests_.find(request);
  C10dEdge& at = edge(operation->peer);
  const Deadline now = Clock::now();
  if (operation->deadline <= now) at.expire(*operation, now);
  return at.status(*operation);
}

void C10dTransport::release(Request request) {
  if (request == 0) return;
  const auto operation = requests_.find(request);
  edge(operation->peer).cancel(*operation);
  requests_.remove(request, *operation);
}

void C10dTransport::progress(Deadline until) {
  progress_until_woken(*wake_up_, requests_, until,
                       [this](Deadline now) { return expire_due(now); });
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
  check_peer(peer, rank_, workers_);
  fail_argument({.place = "transport",
                 .what = "there is no edge to this peer",
                 .got = "worker " + std::to_string(peer) + " at worker " + std::to_string(rank_) +
                        " of " + std::to_string(workers_),
                 .remedy = "give the transport a process group for it"});
}

bool C10dTransport::expire_due(Deadline now) {
  bool any = false;
  for (const auto& operation : requests_.take_due(now)) {
    any = edge(operation->peer).expire(*operation, now) || any;
  }
  return any;
}

void check_edge(const C10dOptions& options, int peer, const C10dEdgeGroup& at) {
  const std::string who = "the group for worker " + std::to_string(peer);
  check_peer(peer, options.rank, options.workers);
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
