#include "gossamer/transport/net/net_transport.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <random>
#include <utility>

#include "gossamer/base/errors.h"
#include "gossamer/kernels/copy.h"
#include "gossamer/transport/bell.h"
#include "gossamer/transport/net/event_loop.h"
#include "gossamer/transport/net/local_peer.h"
#include "gossamer/transport/net/staging.h"
#include "gossamer/transport/request_table.h"

namespace gossamer {
namespace {

constexpr std::chrono::seconds kBeat{1};
constexpr std::size_t kMostStrangers = 256;

/// A word that nobody can guess.
std::string random_name() {
  std::random_device random;
  std::string name = "gossamer-";
  for (int i = 0; i < 8; ++i) {
    constexpr std::string_view kDigits = "0123456789abcdef";
    std::uint32_t bits = random();
    for (int k = 0; k < 8; ++k, bits >>= 4) name += kDigits[bits & 15];
  }
  return name;
}

bool is_same(const std::string& a, const std::vector<std::byte>& b) {
  if (a.size() != b.size()) return false;
  unsigned difference = 0;  // takes the same time wherever they differ
  for (std::size_t i = 0; i < a.size(); ++i) {
    difference |=
        static_cast<unsigned>(static_cast<unsigned char>(a[i])) ^ static_cast<unsigned>(b[i]);
  }
  return difference == 0;
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
  void hear_door();
  void hear_stranger(std::uint32_t number);
  void beat();

  const int rank_;
  const std::string token_;
  const Clock::duration longest_silence_;
  PacketSocket door_;
  Bell bell_;
  RequestTable<NetOperation> requests_;
  Staging staging_;

  mutable std::mutex mutex_;                  // guards all below, and the state of the operations
  std::vector<std::unique_ptr<Peer>> peers_;  ///< by rank; null for this worker
  std::vector<LocalPeer*> local_;             ///< those of them on this host
  std::unordered_map<std::uint32_t, PacketSocket> strangers_;
  std::uint32_t last_stranger_ = 0;
  Clock::time_point last_beat_;
  EventLoop loop_;  ///< last: its thread uses all of it
};

NetTransport::NetTransport(const NetOptions& options)
    : rank_(options.rank),
      token_(options.token),
      longest_silence_(std::chrono::duration_cast<Clock::duration>(options.longest_silence)),
      last_beat_(Clock::now()),
      loop_(kBeat) {
  const std::string reach = reach_of_shared_memory();
  const std::string name = random_name();
  door_ = PacketSocket::listen(name);
  const std::vector<std::string> addresses = options.share(reach + " " + name);
  GOSSAMER_ASSERT(std::ssize(addresses) == options.workers);
  for (int rank = 0; rank < options.workers; ++rank) {
    const std::string& address = addresses[static_cast<std::size_t>(rank)];
    const auto space = address.rfind(' ');
    if (space == std::string::npos || address.substr(0, space) != reach) {
      fail_argument({.place = "net",
                     .what = "workers " + std::to_string(rank_) + " and " + std::to_string(rank) +
                             " cannot share memory",
                     .got = "'" + reach + "' and '" + address + "'",
                     .remedy = "use the transport c10d between hosts and containers"});
    }
    local_.push_back(nullptr);
    peers_.push_back(nullptr);
    if (rank == rank_) continue;
    auto local = std::make_unique<LocalPeer>(rank_, rank, address.substr(space + 1), token_);
    local_.back() = local.get();
    peers_.back() = std::move(local);
  }
  loop_.watch(door_.descriptor(), {EventLoop::Kind::door, 0}, false);
  loop_.start([this](EventLoop::Key key) { hear(key); }, [this] { beat(); });
}

NetTransport::~NetTransport() {
  loop_.stop();
  for (const auto& peer : peers_) {
    if (peer) peer->close({"this worker's transport was destroyed", "the peer left"});
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
  bool ended = false;
  {
    const std::lock_guard lock(mutex_);
    ended = post(peer(operation->peer));
    peer(operation->peer).watch(loop_);
  }
  const Request request = requests_.add(operation, !ended);
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
  const NetPayload placed = place(payload, owner);
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
  TransportInfo info{.name = "net",
                     .rank = rank_,
                     .workers = static_cast<int>(peers_.size()),
                     .lends = Lends::shared_memory,
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
        return hear_door();
      case EventLoop::Kind::stranger:
        return hear_stranger(key.number);
      case EventLoop::Kind::out:
      case EventLoop::Kind::in:
        any = peer(rank).hear(key.kind);
        break;
      case EventLoop::Kind::process:
        any = peer(rank).bury();
        break;
    }
    peer(rank).watch(loop_);
  }
  if (any) bell_.ring();
}

void NetTransport::hear_door() {
  while (PacketSocket next = door_.accept()) {
    if (strangers_.size() >= kMostStrangers) continue;  // closes it
    loop_.watch(next.descriptor(), {EventLoop::Kind::stranger, ++last_stranger_}, false);
    strangers_.emplace(last_stranger_, std::move(next));
  }
}

/// Who has connected says its rank and the token first.
void NetTransport::hear_stranger(std::uint32_t number) {
  const auto stranger = strangers_.find(number);
  if (stranger == strangers_.end()) return;
  Words words;
  std::vector<std::byte> data;
  Descriptor descriptor;
  const PacketResult result = stranger->second.receive(words, data, descriptor);
  if (result == PacketResult::later) return;
  PacketSocket socket = std::move(stranger->second);
  strangers_.erase(stranger);
  loop_.forget(socket.descriptor());
  const bool is_peer = result == PacketResult::done && words.say == Say::hello &&
                       words.number < local_.size() && local_[words.number] != nullptr &&
                       is_same(token_, data);
  if (!is_peer) return;
  LocalPeer& peer = *local_[words.number];
  if (peer.greet(std::move(socket))) peer.watch(loop_);
}

void NetTransport::beat() {
  bool any = false;
  {
    const std::lock_guard lock(mutex_);
    const auto now = Clock::now();
    const bool stood_still = now - last_beat_ > 3 * kBeat;
    last_beat_ = now;
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
