#include "gossamer/transport/threads.h"

#include <utility>

#include "gossamer/transport/cut_off.h"
#include "gossamer/transport/fabric.h"
#include "gossamer/transport/request_table.h"

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
  void close(int peer) override { end(peer, kClosedHere, kClosedByPeer); }
  void expel(int peer) override { end(peer, kLeftOut, kExpelledByPeer); }
  void leave_out(int peer) override { end(peer, kLeftOut, kExpelledByPeer); }
  TransportInfo describe() const override;

 private:
  void end(int peer, const char* here, const char* told);
  Request post(Operation operation);
  bool expire(Operation& operation, Deadline now);
  bool expire_due(Deadline now);

  const std::shared_ptr<Fabric> fabric_;
  const int rank_;
  RequestTable<Operation> requests_;
  const StandstillWatch standstills_;
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
  const auto operation = requests_.find(request);
  const Deadline now = Clock::now();
  if (operation->deadline <= now) expire(*operation, now);
  return fabric_->edge_of(*operation).status(*operation);
}

void ThreadsTransport::release(Request request) {
  if (request == 0) return;
  const auto operation = requests_.find(request);
  if (fabric_->edge_of(*operation).release(*operation)) {
    fabric_->wake_up(operation->peer).notify();
  }
  requests_.remove(request, *operation);
}

void ThreadsTransport::progress(Deadline until) {
  progress_until_woken(fabric_->wake_up(rank_), requests_, until,
                       [this](Deadline now) { return expire_due(now); });
}

void ThreadsTransport::end(int peer, const char* here, const char* told) {
  check_peer(peer, rank_, fabric_->workers());
  fabric_->close(rank_, peer, {here, said_by_peer(told)});
}

TransportInfo ThreadsTransport::describe() const {
  TransportInfo info{.name = "threads",
                     .rank = rank_,
                     .workers = fabric_->workers(),
                     .lends = Lends::any_memory,
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

Request ThreadsTransport::post(Operation operation) {
  check_peer(operation.peer, rank_, fabric_->workers());
  const auto posted = std::make_shared<Operation>(std::move(operation));
  const bool ended = fabric_->edge_of(*posted).post(posted);
  const Request request = requests_.add(posted, !ended);
  fabric_->wake_up(rank_).notify();
  if (ended) fabric_->wake_up(posted->peer).notify();
  return request;
}

bool ThreadsTransport::expire(Operation& operation, Deadline now) {
  if (!fabric_->edge_of(operation).expire(operation, now)) return false;
  fabric_->wake_up(rank_).notify();
  return true;
}

bool ThreadsTransport::expire_due(Deadline now) {
  bool any = false;
  for (const auto& operation : requests_.take_due(now)) any = expire(*operation, now) || any;
  return any;
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
