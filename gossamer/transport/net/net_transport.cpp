#include "gossamer/transport/net/net_transport.h"

#include <algorithm>
#include <atomic>
#include <utility>

#include "gossamer/base/errors.h"
#include "gossamer/base/timeout.h"
#include "gossamer/transport/bell.h"
#include "gossamer/transport/net/card.h"
#include "gossamer/transport/net/event_loop.h"
#include "gossamer/transport/net/fair_mutex.h"
#include "gossamer/transport/net/local_peer.h"
#include "gossamer/transport/net/reception.h"
#include "gossamer/transport/net/staging.h"
#include "gossamer/transport/net/stream_peer.h"
#include "gossamer/transport/request_table.h"

namespace gossamer {
namespace {

constexpr std::chrono::seconds kBeat{1};
constexpr const char* kRestarted = "the peer restarted";
const std::string kReplaced = "a later generation of this worker is there";
// For what was said to reach peers when this worker leaves.
constexpr std::chrono::seconds kLinger{1};

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
  bool expire_due(Deadline now);
  void hear(EventLoop::Key key);
  bool hear_at_door(EventLoop::Key key);
  bool hear_peer(EventLoop::Key key);
  void make_peer(std::size_t rank, const Card& card);
  bool replace(const Introduction& who);
  bool let_in(Arrival arrival);
  void beat();
  void ring();

  const int rank_;
  const std::string token_;
  const std::shared_ptr<const TlsKeys> keys_;  ///< none: streams are not over TLS
  const bool authenticates_;
  const std::uint64_t generation_;
  const Clock::duration longest_silence_;
  Bell bell_;
  std::atomic<int> waiting_{0};  ///< threads that wait for the bell
  RequestTable<NetOperation> requests_;
  Staging staging_;
  std::vector<std::atomic<bool>> is_local_;  ///< whether a rank shares memory with this one

  mutable FairMutex mutex_;  // guards all below, and the state of the operations
  Card mine_;
  std::vector<std::shared_ptr<Peer>> peers_;  ///< by rank; null for this worker
  std::vector<LocalPeer*> local_;             ///< those of them on this host
  std::vector<StreamPeer*> streams_;          ///< those of them on others
  const StandstillWatch standstills_;
  Clock::time_point last_beat_;
  EventLoop loop_;
  Reception reception_;
};

NetTransport::NetTransport(const NetOptions& options)
    : rank_(options.rank),
      token_(options.token),
      keys_(options.tls ? std::make_shared<const TlsKeys>(token_) : nullptr),
      authenticates_(options.authenticates),
      generation_(options.generation),
      longest_silence_(duration_of(options.longest_silence.count(), "net")),
      is_local_(static_cast<std::size_t>(options.workers)),
      last_beat_(Clock::now()),
      loop_(kBeat),
      reception_(reception_of(options, keys_), loop_) {
  mine_ = {.reach = options.share_memory ? reach_of_shared_memory() : "",
           .name = reception_.name(),
           .streams = reception_.address(),
           .generation = generation_,
           .tls = options.tls};
  if (mine_.reach.empty()) mine_.reach = "-";
  if (mine_.streams.port == 0) mine_.streams.host = "-";
  const std::vector<std::string> cards = options.share(to_text(mine_));
  GOSSAMER_ASSERT(std::ssize(cards) == options.workers);
  local_.resize(cards.size());
  streams_.resize(cards.size());
  peers_.resize(cards.size());
  for (std::size_t rank = 0; rank < cards.size(); ++rank) {
    if (std::cmp_not_equal(rank, rank_)) make_peer(rank, card_of(cards[rank]));
  }
  for (const auto& peer : peers_) {
    if (!peer || generation_ == 0) continue;
    peer->reach();
    peer->watch(loop_);
  }
  loop_.start([this](EventLoop::Key key) { hear(key); }, [this] { beat(); });
}

/// The peer of a rank, which can be reached as its card says.
void NetTransport::make_peer(std::size_t rank, const Card& card) {
  const Introduction own{.rank = static_cast<std::uint64_t>(rank_),
                         .member = static_cast<std::uint64_t>(rank_),
                         .generation = generation_,
                         .card = to_text(mine_)};
  const int number = static_cast<int>(rank);
  const PeerOptions options{.own = own,
                            .peer = number,
                            .generation = card.generation,
                            .token = token_,
                            .authenticates = authenticates_};
  check_way(rank_, mine_, number, card);
  const bool is_local = share_memory(mine_, card);
  const auto local = is_local ? std::make_shared<LocalPeer>(options, card.name) : nullptr;
  const auto stream =
      is_local ? nullptr : std::make_shared<StreamPeer>(options, card.streams, keys_);
  local_[rank] = local.get();
  streams_[rank] = stream.get();
  is_local_[rank] = is_local;
  peers_[rank] = is_local ? std::shared_ptr<Peer>(local) : stream;
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

template <class Post>
Request NetTransport::post(const Pointer& operation, const Post& post) {
  operation->rank = rank_;
  bool is_pending = false;
  {
    const std::lock_guard lock(mutex_);
    operation->at = peers_[static_cast<std::size_t>(operation->peer)];
    post(*operation->at);
    is_pending = operation->state == Status::State::pending;
    operation->at->watch(loop_);
  }
  const Request request = requests_.add(operation, is_pending);
  ring();
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
  const bool is_local = is_local_[static_cast<std::size_t>(to)];
  const NetPayload placed =
      is_local ? place(staging_, payload, owner) : NetPayload{.bytes = payload};
  operation->lends = placed.memory != nullptr && placed.memory == owner.shared();
  return post(operation, [&](Peer& peer) {
    if (peer.shares_memory() == is_local) return peer.send(operation, placed);
    return peer.refuse(*operation, kRestarted);  // on another host, this very moment
  });
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
  if (operation->at->expire(*operation, Clock::now())) {
    operation->at->watch(loop_);
    ring();
  }
  return {.state = operation->state,
          .payload = operation->content,
          .error = operation->error,
          .arrived = operation->arrived};
}

void NetTransport::release(Request request) {
  if (request == 0) return;
  const auto operation = requests_.find(request);
  bool any = false;
  {
    const std::lock_guard lock(mutex_);
    operation->at->release(*operation);
    any = operation->at->watch(loop_);
  }
  requests_.remove(request, *operation);
  if (any) ring();
}

/// Of a thread that has entered the loop.
struct Visit {
  EventLoop& loop;
  const std::atomic<int>& waiting;
  ~Visit() { loop.leave(waiting > 0); }
};

/// One thread that waits hears what peers say, others wait for the bell. Whoever rings wakes both:
/// a thread that hears looks at the bell after it has entered the loop, which is seen by what rings
/// later.
void NetTransport::progress(Deadline until) {
  for (bool news = false; !news;) {
    const Deadline now = Clock::now();
    if (expire_due(now)) return;
    if (now >= until) break;
    const Deadline wake = std::min(until, requests_.next_deadline());
    if (!loop_.enter()) {
      ++waiting_;
      news = bell_.wait(wake);
      --waiting_;
      continue;
    }
    const Visit visit{loop_, waiting_};
    news = bell_.has_rung();
    if (!news) loop_.wait(wake);
    news = news || bell_.has_rung();
  }
  expire_due(Clock::now());
}

void NetTransport::ring() {
  bell_.ring();
  loop_.wake();
}

bool NetTransport::expire_due(Deadline now) {
  bool any = false;
  for (const auto& operation : requests_.take_due(now)) {
    const std::lock_guard lock(mutex_);
    if (!operation->at->expire(*operation, now)) continue;
    operation->at->watch(loop_);
    any = true;
  }
  if (any) ring();
  return any;
}

void NetTransport::close(int rank) {
  check_peer(rank, rank_, static_cast<int>(peers_.size()));
  {
    const std::lock_guard lock(mutex_);
    peer(rank).close({"this worker closed the peer", "the peer closed the connection"});
    peer(rank).watch(loop_);
  }
  ring();
}

TransportInfo NetTransport::describe() const {
  const bool is_local =
      std::ranges::any_of(is_local_, [](const auto& each) { return each.load(); });
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
  {
    const std::lock_guard lock(mutex_);
    any = EventLoop::is_of_reception(key.kind) ? hear_at_door(key) : hear_peer(key);
  }
  if (any) ring();
}

/// Somebody for whom the system has nothing left is not let in; it may try again.
bool NetTransport::hear_at_door(EventLoop::Key key) {
  try {
    auto arrival = reception_.hear(key);
    return arrival && let_in(std::move(*arrival));
  } catch (const IoError&) {
    return false;
  }
}

bool NetTransport::hear_peer(EventLoop::Key key) {
  const int rank = static_cast<int>(key.number);
  const bool is_end = key.kind == EventLoop::Kind::process;
  if (is_end && !loop_.has_process_ended(key.number)) return false;  // of a former generation
  bool any = false;
  try {
    any = is_end ? peer(rank).bury() : peer(rank).hear(key.kind);
  } catch (const IoError& error) {
    any = peer(rank).close({error.what(), "the peer can hear no more"});
  }
  return peer(rank).watch(loop_) || any;
}

/// A second connection of a worker, or one of another kind than its place asks for, is closed; so
/// is one of a generation that has been replaced.
bool NetTransport::let_in(Arrival arrival) {
  const std::uint64_t rank = arrival.who.rank;
  if (rank >= peers_.size() || !peers_[rank]) return false;
  const std::uint64_t known = peers_[rank]->generation();
  if (peers_[rank]->is_tiresome()) return false;  // it may come again
  if (arrival.who.generation < known) {
    arrival.stream.say({.say = Say::bye}, bytes_of(kReplaced));
    arrival.stream.write();
    return false;
  }
  bool any = arrival.who.generation > known && replace(arrival.who);
  LocalPeer* const local = local_[rank];
  StreamPeer* const stream = streams_[rank];
  if (local != nullptr && arrival.socket) {
    local->greet(std::move(arrival.socket));
  } else if (stream != nullptr && arrival.stream && stream->greet(std::move(arrival.stream))) {
    any = stream->hear(EventLoop::Kind::in) || any;  // what came with the first words
  }
  return peers_[rank]->watch(loop_) || any;
}

/// See Note [Generations]. Does nothing where the card does not fit or leads nowhere.
bool NetTransport::replace(const Introduction& who) {
  const std::shared_ptr<Peer> former = peers_[who.rank];
  const Card card = card_of(who.card);
  if (card.generation != who.generation) return false;
  try {
    make_peer(who.rank, card);
  } catch (const std::invalid_argument&) {
    return false;
  }
  const bool any = former->close({kRestarted, kReplaced});
  former->retire(loop_);
  peers_[who.rank]->count_on_from(*former);
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
      any = peer(rank).watch(loop_) || any;
    }
  }
  if (any) ring();
}

}  // namespace

std::unique_ptr<Transport> make_net_transport(const NetOptions& options) {
  if (options.workers < 1 || options.rank < 0 || options.rank >= options.workers) {
    fail_argument({.place = "net",
                   .what = "a rank must be one of the workers",
                   .got = std::to_string(options.rank) + " of " + std::to_string(options.workers)});
  }
  allow_many_descriptors();  // every worker of another host takes two, and shells start with 1024
  return std::make_unique<NetTransport>(options);
}

}  // namespace gossamer
