#include "gossamer/transport/net/net_transport.h"

#include <algorithm>
#include <atomic>
#include <utility>

#include "gossamer/base/errors.h"
#include "gossamer/base/timeout.h"
#include "gossamer/transport/cut_off.h"
#include "gossamer/transport/net/acceptor.h"
#include "gossamer/transport/net/endpoint.h"
#include "gossamer/transport/net/event_loop.h"
#include "gossamer/transport/net/fair_mutex.h"
#include "gossamer/transport/net/local_wire.h"
#include "gossamer/transport/net/newcomers.h"
#include "gossamer/transport/net/peer.h"
#include "gossamer/transport/net/silence_watch.h"
#include "gossamer/transport/net/staging.h"
#include "gossamer/transport/net/stream_wire.h"
#include "gossamer/transport/request_table.h"
#include "gossamer/transport/wake_up.h"

namespace gossamer {
namespace {

constexpr std::chrono::seconds kBeat{1};
constexpr const char* kRestarted = "the peer restarted";
constexpr const char* kNotYet = "it has not come yet";
constexpr std::chrono::seconds kLinger{1};  // for the last frames, when this worker leaves

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
  void close(int peer) override { end(peer, {kClosedHere, kClosedByPeer}); }
  void expel(int peer) override { end(peer, {{}, kExpelledByPeer}, Whom::silent); }
  void leave_out(int peer) override { end(peer, {kLeftOut, kExpelledByPeer}, Whom::let_in); }
  TransportInfo describe() const override;
  std::optional<Unheard> unheard(int peer) const override {
    const std::lock_guard lock(mutex_);
    return silences_.unheard(peer, Clock::now());
  }
  void hold_back_newcomers() override { newcomers_.hold_back(); }
  std::vector<Newcomer> newcomers() override { return newcomers_.take(); }
  void count_in(int rank, Standing standing) override { newcomers_.count_in(rank, standing); }
  Standing standing(int rank) const override { return newcomers_.standing(rank); }
  void let_in(const Newcomer& newcomer) override;
  std::uint64_t generation(int rank) const override;

 private:
  using Pointer = NetOperation::Pointer;
  class Turn;

  Peer& peer(int rank) { return *peers_[static_cast<std::size_t>(rank)]; }
  template <class Post>
  Request post(const Pointer& operation, const Post& post);
  bool expire_due(Deadline now);
  enum class Whom { all, silent, let_in };
  void end(int rank, Ending ending, Whom whom = Whom::all);
  void handle(EventLoop::Key key);
  void let_in(AcceptedConnection accepted);
  void make_peer(std::size_t rank, const Endpoint& endpoint);
  void replace(const Identity& identity);
  void beat();
  void notify();

  const int rank_;
  const std::string token_;
  const std::shared_ptr<const TlsKeys> keys_;  ///< none: streams are not over TLS
  const bool authenticates_;
  const std::uint64_t generation_;
  WakeUp wake_up_;
  std::atomic<int> waiting_{0};  ///< threads that wait for it
  RequestTable<NetOperation> requests_;
  Staging staging_;
  std::vector<std::atomic<bool>> is_local_;  ///< whether a rank shares memory with this one

  mutable FairMutex mutex_;  // guards all below, and the state of the operations
  EndedOperations ended_;    ///< in this turn
  Endpoint mine_;
  std::vector<std::shared_ptr<Peer>> peers_;  ///< by rank; null for this worker
  Newcomers newcomers_;
  const StandstillWatch standstills_;
  Clock::time_point last_beat_;
  SilenceWatch silences_;
  EventLoop loop_;
  Acceptor acceptor_;
};

/// Holds the lock. When it is given up, all that wait are woken if operations have ended.
class NetTransport::Turn {
 public:
  explicit Turn(NetTransport& transport) : transport_(transport) { transport_.mutex_.lock(); }
  ~Turn() {
    const bool notifies = notifies_ || has_ended();
    transport_.ended_.clear();
    transport_.mutex_.unlock();
    if (notifies) transport_.notify();
  }
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;

  /// Operations have, in this turn.
  bool has_ended() const { return !transport_.ended_.empty(); }
  /// All are woken in any case.
  void notify() { notifies_ = true; }

 private:
  NetTransport& transport_;
  bool notifies_ = false;
};

NetTransport::NetTransport(const NetOptions& options)
    : rank_(options.rank),
      token_(options.token),
      keys_(options.tls ? std::make_shared<const TlsKeys>(token_) : nullptr),
      authenticates_(options.authenticates),
      generation_(options.generation),
      is_local_(static_cast<std::size_t>(options.workers)),
      newcomers_(static_cast<std::size_t>(options.workers)),
      last_beat_(Clock::now()),
      silences_(duration_of(options.longest_silence.count(), "net"), options.least_heard),
      loop_(kBeat),
      acceptor_(acceptor_options(options, keys_), loop_) {
  if (generation_ > 0) newcomers_.come_back(rank_);
  mine_ = with_dashes({.reach = options.share_memory ? reach_of_shared_memory() : "",
                       .name = acceptor_.name(),
                       .streams = acceptor_.address(),
                       .generation = generation_,
                       .tls = options.tls});
  const std::vector<std::string> endpoints = options.share(to_text(mine_));
  GOSSAMER_ASSERT(std::ssize(endpoints) == options.workers);
  peers_.resize(endpoints.size());
  for (std::size_t rank = 0; rank < endpoints.size(); ++rank) {
    if (std::cmp_equal(rank, rank_)) continue;
    const Endpoint endpoint = endpoint_of(endpoints[rank]);
    const bool is_there = !endpoints[rank].empty();
    if (is_there) check_way(rank_, mine_, static_cast<int>(rank), endpoint);
    make_peer(rank, endpoint);
    if (!is_there) peers_[rank]->close({kNotYet, kNotYet});
    const bool is_back = generation_ == 0 && endpoint.generation > 0;  // before the first talk
    if (is_back) newcomers_.come({static_cast<int>(rank), endpoint.generation});
  }
  for (std::size_t rank = 0; rank < peers_.size(); ++rank) {
    if (peers_[rank] && generation_ > 0 && !endpoints[rank].empty()) peers_[rank]->connect();
  }
  loop_.start([this](EventLoop::Key key) { handle(key); }, [this] { beat(); });
}

/// The peer of a rank, which can be reached at its endpoint.
void NetTransport::make_peer(std::size_t rank, const Endpoint& endpoint) {
  const Identity own{.rank = static_cast<std::uint64_t>(rank_),
                     .member = static_cast<std::uint64_t>(rank_),
                     .generation = generation_,
                     .endpoint = to_text(mine_)};
  const int number = static_cast<int>(rank);
  const bool is_local = share_memory(mine_, endpoint);
  peers_[rank] = std::make_shared<Peer>(
      PeerOptions{.own = own,
                  .peer = number,
                  .generation = endpoint.generation,
                  .token = token_,
                  .authenticates = authenticates_ && !is_local},
      loop_, ended_, is_local ? local_wire(endpoint.name) : stream_wire(endpoint.streams, keys_));
  is_local_[rank] = is_local;
}

NetTransport::~NetTransport() {
  loop_.stop();
  const Ending leaving = ending_of_one_that_leaves(peers_);
  for (const auto& peer : peers_) {
    if (peer) peer->close(leaving);
  }
  const Deadline limit = Clock::now() + kLinger;
  for (const auto& peer : peers_) {
    if (peer) peer->close(leaving, limit);
  }
}

template <class Post>
Request NetTransport::post(const Pointer& operation, const Post& post) {
  operation->rank = rank_;
  Turn turn(*this);
  operation->at = peers_[static_cast<std::size_t>(operation->peer)];
  if (newcomers_.is_held_back(operation->peer) && operation->tag.stream != kNewcomers) {
    set_failed(*operation, kRestarted);
  } else {
    post(*operation->at);
  }
  turn.notify();
  return requests_.add(operation, operation->state == Status::State::pending);
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
    const bool has_moved = is_local_[static_cast<std::size_t>(to)] != is_local;
    if (!has_moved) return peer.post(operation, placed);
    set_failed(*operation, kRestarted);  // on another host, this very moment
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
  return post(operation, [&](Peer& peer) { peer.post(operation); });
}

Status NetTransport::poll(Request request) {
  const auto operation = requests_.find(request);
  const Turn turn(*this);
  operation->at->expire(operation, Clock::now(), silences_);
  return {operation->state, operation->content, operation->error, operation->arrived};
}

void NetTransport::release(Request request) {
  if (request == 0) return;
  const auto operation = requests_.find(request);
  {
    const Turn turn(*this);
    operation->at->release(operation);
  }
  requests_.remove(request, *operation);
}

/// One thread that waits handles the events, others wait for the wake-up. notify() wakes both: a
/// thread that handles events looks at the wake-up after it has entered the loop, and whoever
/// notifies later sees that it is there.
void NetTransport::progress(Deadline until) {
  for (bool is_woken = false; !is_woken;) {
    const Deadline now = Clock::now();
    if (expire_due(now)) return;
    if (now >= until) break;
    const Deadline wake = std::min(until, requests_.next_deadline());
    if (!loop_.enter()) {
      ++waiting_;
      is_woken = wake_up_.wait(wake);
      --waiting_;
      continue;
    }
    const EventLoop::Visit visit{loop_, waiting_};
    is_woken = wake_up_.take();
    if (!is_woken) loop_.wait(wake);
    is_woken = is_woken || wake_up_.take();
  }
  expire_due(Clock::now());
}

void NetTransport::notify() {
  wake_up_.notify();
  loop_.wake();
}

bool NetTransport::expire_due(Deadline now) {
  const auto due = requests_.take_due(now);
  if (due.empty()) return false;
  const Turn turn(*this);
  for (const auto& operation : due) operation->at->expire(operation, now, silences_);
  return turn.has_ended();
}

/// Where the peer has been silent, that is why, and not that it is closed therefore.
void NetTransport::end(int rank, Ending ending, Whom whom) {
  check_peer(rank, rank_, static_cast<int>(peers_.size()));
  Turn turn(*this);
  const std::string& silence = peer(rank).silence();
  if (whom == Whom::silent && silence.empty()) return;
  if (whom == Whom::let_in && newcomers_.is_held_back(rank)) return;
  if (whom != Whom::all && !silence.empty()) ending.here = silence;
  peer(rank).close(ending);
  turn.notify();
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
    const auto traffic = peer ? peer->traffic() : std::nullopt;
    if (traffic) info.edges.push_back(*traffic);
  }
  return info;
}

/// A connection for which the system has nothing left is not let in; it may come again.
void NetTransport::handle(EventLoop::Key key) {
  const Turn turn(*this);
  if (!EventLoop::is_of_acceptor(key.kind)) {
    return peer(static_cast<int>(key.number)).handle(key.kind);
  }
  try {
    if (auto accepted = acceptor_.handle(key)) let_in(std::move(*accepted));
  } catch (const IoError&) {  // nothing is left for it
  }
}

/// A second connection of a worker, or one of another kind than its place asks for, is closed; so
/// is one of a generation that has been replaced.
void NetTransport::let_in(AcceptedConnection accepted) {
  const std::uint64_t rank = accepted.identity.rank;
  if (rank >= peers_.size() || !peers_[rank]) return;
  const std::uint64_t known = peers_[rank]->generation();
  if (peers_[rank]->is_throttled()) return;  // it may come again
  if (accepted.identity.generation < known) {
    accepted.stream.send({.type = FrameType::bye}, bytes_of(kReplacedByPeer));
    return accepted.stream.write();
  }
  if (accepted.identity.generation > known) replace(accepted.identity);
  peers_[rank]->accept(std::move(accepted));
}

/// See Note [Generations]. Does nothing where the endpoint does not fit or leads nowhere.
void NetTransport::replace(const Identity& identity) {
  const std::shared_ptr<Peer> former = peers_[identity.rank];
  const Endpoint endpoint = endpoint_of(identity.endpoint);
  if (endpoint.generation != identity.generation) return;
  try {
    check_way(rank_, mine_, static_cast<int>(identity.rank), endpoint);
    make_peer(identity.rank, endpoint);
  } catch (const std::invalid_argument&) {
    return;
  }
  peers_[identity.rank]->replace(*former, {kRestarted, kReplacedByPeer});
  newcomers_.come({static_cast<int>(identity.rank), identity.generation});
}

void NetTransport::let_in(const Newcomer& newcomer) {
  const std::lock_guard lock(mutex_);
  if (peer(newcomer.peer).generation() == newcomer.generation) newcomers_.let_in(newcomer.peer);
}

std::uint64_t NetTransport::generation(int rank) const {
  const std::lock_guard lock(mutex_);
  const auto& peer = peers_[static_cast<std::size_t>(rank)];
  return peer ? peer->generation() : generation_;
}

void NetTransport::beat() {
  const Turn turn(*this);
  const auto now = Clock::now();
  const bool stood_still = now - std::exchange(last_beat_, now) > 3 * kBeat;
  acceptor_.beat(now);
  std::vector<LastHeard> heard(peers_.size());
  for (std::size_t rank = 0; rank < peers_.size(); ++rank) {
    if (peers_[rank]) heard[rank] = peers_[rank]->last_heard();
    heard[rank].standing = newcomers_.standing(static_cast<int>(rank));
  }
  const std::vector<Silence> silences = silences_.look(heard, rank_, now);
  if (stood_still) silences_.forget();
  for (std::size_t rank = 0; rank < peers_.size(); ++rank) {
    if (!peers_[rank]) continue;
    peers_[rank]->beat({.idle_since = now - kBeat / 2,
                        .silence = stood_still ? Silence::none : silences[rank],
                        .forgives_silence = stood_still});
  }
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
