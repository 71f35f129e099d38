#include "gossamer/transport/net/net_transport.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <sstream>
#include <utility>

#include "gossamer/base/errors.h"
#include "gossamer/kernels/copy.h"
#include "gossamer/transport/bell.h"
#include "gossamer/transport/net/event_loop.h"
#include "gossamer/transport/net/local_peer.h"
#include "gossamer/transport/net/reception.h"
#include "gossamer/transport/net/staging.h"
#include "gossamer/transport/net/stream_peer.h"
#include "gossamer/transport/request_table.h"

namespace gossamer {
namespace {

constexpr std::chrono::seconds kBeat{1};
// For what was said to reach peers when this worker leaves.
constexpr std::chrono::seconds kLinger{1};

/// Where a worker can be reached, as it tells the others.
struct Card {
  std::string reach;  ///< see reach_of_shared_memory(); "-" for none
  std::string name;   ///< on its host
  StreamAddress streams;
};

std::string to_text(const Card& card) {
  std::ostringstream text;
  text << card.reach << ' ' << card.name << ' ' << card.streams.host << ' ' << card.streams.port;
  return text.str();
}

Card card_of(const std::string& text) {
  Card card;
  std::istringstream words(text);
  words >> card.reach >> card.name >> card.streams.host >> card.streams.port;
  return card;
}

class NetTransport final : public Transport {
 public:
  explicit NetTransport(const NetOptions& options);
  ~NetTransport() override;

  Request send(int peer, Tag tag, std::span<const std::byte> payload, Deadline deadline,
               Owner owner) override;
  Request receive(int peer, Tag tag, std::span<std::byte> landing, Deadline deadline) override;
  Status poll(Request request) override;
  void release(Request request) override;
  void progress(Deadline until) override;
  void close(int peer) override;
  TransportInfo describe() const override;

 private:
  using Pointer = std::shared_ptr<NetOperation>;

  Peer& peer(int rank) { return *peers_[static_cast<std::size_t>(rank)]; }
  template <class Post>
  Request post(const Pointer& operation, const Post& post);
  NetPayload place(std::span<const std::byte> payload, const Owner& owner);
  bool expire_due(Deadline now);
  void hear(EventLoop::Key key);
  void make_peers(const std::vector<Card>& cards);
  bool let_in(Arrival arrival);
  void beat();

  const int rank_;
  const std::string token_;
  const Clock::duration longest_silence_;
  Bell bell_;
  RequestTable<NetOperation> requests_;
  Staging staging_;

  mutable std::mutex mutex_;                  // guards all below, and the state of the operations
  std::vector<std::unique_ptr<Peer>> peers_;  ///< by rank; null for this worker
  std::vector<LocalPeer*> local_;             ///< those of them on this host
  std::vector<StreamPeer*> streams_;          ///< those of them on others
  Clock::time_point last_beat_;
  EventLoop loop_;
  Reception reception_;
};

NetTransport::NetTransport(const NetOptions& options)
    : rank_(options.rank),
      token_(options.token),
      longest_silence_(std::chrono::duration_cast<Clock::duration>(options.longest_silence)),
      last_beat_(Clock::now()),
      loop_(kBeat),
      reception_(rank_, token_, options.address, loop_) {
  Card mine{.reach = options.share_memory ? reach_of_shared_memory() : "",
            .name = reception_.name(),
            .streams = reception_.address()};
  if (mine.reach.empty()) mine.reach = "-";
  if (mine.streams.port == 0) mine.streams.host = "-";
  std::vector<Card> cards;
  for (const std::string& text : options.share(to_text(mine))) cards.push_back(card_of(text));
  GOSSAMER_ASSERT(std::ssize(cards) == options.workers);
  make_peers(cards);
  loop_.start([this](EventLoop::Key key) { hear(key); }, [this] { beat(); });
}

void NetTransport::make_peers(const std::vector<Card>& cards) {
  const Card& mine = cards[static_cast<std::size_t>(rank_)];
  local_.resize(cards.size());
  streams_.resize(cards.size());
  for (std::size_t k = 0; k < cards.size(); ++k) {
    const int rank = static_cast<int>(k);
    peers_.push_back(nullptr);
    if (rank == rank_) continue;
    const Card& card = cards[k];
    if (card.reach == mine.reach && card.reach != "-") {
      auto local = std::make_unique<LocalPeer>(rank_, rank, card.name, token_);
      local_[k] = local.get();
      peers_.back() = std::move(local);
    } else if (card.streams.port != 0 && mine.streams.port != 0) {
      auto stream = std::make_unique<StreamPeer>(rank_, rank, card.streams, token_);
      streams_[k] = stream.get();
      peers_.back() = std::move(stream);
    } else {
      fail_argument({.place = "net",
                     .what = "workers " + std::to_string(rank_) + " and " + std::to_string(rank) +
                             " cannot share memory",
                     .got = "'" + mine.reach + "' and '" + card.reach + "'",
                     .remedy = "give all workers an address to listen on"});
    }
  }
}

NetTransport::~NetTransport() {
  loop_.stop();
  for (const auto& peer : peers_) {
    if (peer) peer->close({"this worker's transport was destroyed", "the peer left"});
  }
  const Deadline limit = Clock::now() + kLinger;
  for (const auto& peer : peers_) {
    if (peer) peer->finish(limit);
  }
}

/// Where peers can read a payload. Copies what they cannot.
NetPayload NetTransport::place(std::span<const std::byte> payload, const Owner& owner) {
  if (owner.shared() && owner.shared()->contains(payload.data(), payload.size())) {
    return {payload, owner.shared(), owner.shared()};
  }
  if (payload.size() <= kInlineBytes) return {payload};
  const StagedBlock block = staging_.take(payload.size());
  copy_streaming(block.data, payload.data(), payload.size());
  return {{block.data, payload.size()}, block.memory, block.keeps};
}

template <class Post>
Request NetTransport::post(const Pointer& operation, const Post& post) {
  operation->rank = rank_;
  bool is_pending = false;
  {
    const std::lock_guard lock(mutex_);
    post(peer(operation->peer));
    is_pending = operation->state == Status::State::pending;
    peer(operation->peer).watch(loop_);
  }
  const Request request = requests_.add(operation, is_pending);
  bell_.ring();
  return request;
}

Request NetTransport::send(int to, Tag tag, std::span<const std::byte> payload, Deadline deadline,
                           Owner owner) {
  check_peer(to, rank_, static_cast<int>(peers_.size()));
  const auto operation = std::make_shared<NetOperation>(NetOperation{.sending = true,
                                                                     .peer = to,
                                                                     .tag = tag,
                                                                     .bytes = payload.size(),
                                                                     .posted = Clock::now(),
                                                                     .deadline = deadline});
  const bool is_local = local_[static_cast<std::size_t>(to)] != nullptr;
  const NetPayload placed = is_local ? place(payload, owner) : NetPayload{.bytes = payload};
  operation->lends = placed.memory != nullptr && placed.memory == owner.shared();
  return post(operation, [&](Peer& peer) { return peer.send(operation, placed); });
}

Request NetTransport::receive(int from, Tag tag, std::span<std::byte> landing, Deadline deadline) {
  check_peer(from, rank_, static_cast<int>(peers_.size()));
  const auto operation = std::make_shared<NetOperation>(NetOperation{.sending = false,
                                                                     .peer = from,
                                                                     .tag = tag,
                                                                     .bytes = landing.size(),
                                                                     .posted = Clock::now(),
                                                                     .deadline = deadline,
                                                                     .landing = landing.data()});
  return post(operation, [&](Peer& peer) { return peer.receive(operation); });
}

Status NetTransport::poll(Request request) {
  const auto operation = requests_.find(request);
  const std::lock_guard lock(mutex_);
  if (peer(operation->peer).expire(*operation, Clock::now())) {
    peer(operation->peer).watch(loop_);
    bell_.ring();
  }
  return {.state = operation->state,
          .payload = operation->content,
          .error = operation->error,
          .arrived = operation->arrived};
}

void NetTransport::release(Request request) {
  if (request == 0) return;
  const auto operation = requests_.find(request);
  {
    const std::lock_guard lock(mutex_);
    peer(operation->peer).release(*operation);
    peer(operation->peer).watch(loop_);
  }
  requests_.remove(request, *operation);
}

void NetTransport::progress(Deadline until) {
  progress_by_bell(bell_, requests_, until, [this](Deadline now) { return expire_due(now); });
}

bool NetTransport::expire_due(Deadline now) {
  bool any = false;
  for (const auto& operation : requests_.take_due(now)) {
    const std::lock_guard lock(mutex_);
    if (!peer(operation->peer).expire(*operation, now)) continue;
    peer(operation->peer).watch(loop_);
    any = true;
  }
  if (any) bell_.ring();
  return any;
}

void NetTransport::close(int rank) {
  check_peer(rank, rank_, static_cast<int>(peers_.size()));
  {
    const std::lock_guard lock(mutex_);
    peer(rank).close({"this worker closed the peer", "the peer closed the connection"});
    peer(rank).watch(loop_);
  }
  bell_.ring();
}

TransportInfo NetTransport::describe() const {
  const bool is_local =
      std::ranges::any_of(local_, [](const LocalPeer* p) { return p != nullptr; });
  TransportInfo info{.name = "net",
                     .rank = rank_,
                     .workers = static_cast<int>(peers_.size()),
                     .lends = is_local ? Lends::shared_memory : Lends::nothing,
                     .edges = {}};
  const std::lock_guard lock(mutex_);
  for (const auto& peer : peers_) {
    if (peer && peer->is_used()) info.edges.push_back(peer->traffic());
  }
  return info;
}

void NetTransport::hear(EventLoop::Key key) {
  bool any = false;
  const int rank = static_cast<int>(key.number);
  {
    const std::lock_guard lock(mutex_);
    switch (key.kind) {
      case EventLoop::Kind::none:
        return;
      case EventLoop::Kind::door:
      case EventLoop::Kind::stream_door:
      case EventLoop::Kind::stranger: {
        auto arrival = reception_.hear(key);
        any = arrival && let_in(std::move(*arrival));
        break;
      }
      case EventLoop::Kind::out:
      case EventLoop::Kind::in:
        any = peer(rank).hear(key.kind);
        peer(rank).watch(loop_);
        break;
      case EventLoop::Kind::process:
        any = peer(rank).bury();
        peer(rank).watch(loop_);
        break;
    }
  }
  if (any) bell_.ring();
}

/// A second connection of a worker, or one of another kind than its place asks for, is closed.
bool NetTransport::let_in(Arrival arrival) {
  if (arrival.rank >= peers_.size() || !peers_[arrival.rank]) return false;
  LocalPeer* const local = local_[arrival.rank];
  StreamPeer* const stream = streams_[arrival.rank];
  bool any = false;
  if (local != nullptr && arrival.socket) {
    local->greet(std::move(arrival.socket));
  } else if (stream != nullptr && arrival.stream && stream->greet(std::move(arrival.stream))) {
    any = stream->hear(EventLoop::Kind::in);  // what came with the first words
  }
  peers_[arrival.rank]->watch(loop_);
  return any;
}

void NetTransport::beat() {
  bool any = false;
  {
    const std::lock_guard lock(mutex_);
    const auto now = Clock::now();
    const bool stood_still = now - last_beat_ > 3 * kBeat;
    last_beat_ = now;
    reception_.beat(now);
    for (int rank = 0; rank < static_cast<int>(peers_.size()); ++rank) {
      if (rank == rank_) continue;
      if (stood_still) peer(rank).excuse(now);
      any = peer(rank).beat(now - kBeat, now - longest_silence_) || any;
      peer(rank).watch(loop_);
    }
  }
  if (any) bell_.ring();
}

}  // namespace

std::string reach_of_shared_memory() {
  try {
    const SharedMemory probe(1);
  } catch (const IoError&) {
    return "";
  }
  std::string boot;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> boot;
  struct stat network {};
  if (boot.empty() || ::stat("/proc/self/ns/net", &network) != 0) return "";
  return boot + "/" + std::to_string(network.st_ino) + "/" + std::to_string(::geteuid());
}

std::unique_ptr<Transport> make_net_transport(const NetOptions& options) {
  if (options.workers < 1 || options.rank < 0 || options.rank >= options.workers) {
    fail_argument({.place = "net",
                   .what = "a rank must be one of the workers",
                   .got = std::to_string(options.rank) + " of " + std::to_string(options.workers)});
  }
  return std::make_unique<NetTransport>(options);
}

}  // namespace gossamer
