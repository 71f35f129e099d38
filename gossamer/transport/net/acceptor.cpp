#include "gossamer/transport/net/acceptor.h"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <string_view>
#include <utility>

namespace gossamer {
namespace {

constexpr std::chrono::seconds kTimeToVerify{5};
constexpr std::size_t kMostUnverified = 256;
// So that those that have connected do not wait for all that connect.
constexpr int kAcceptedAtOnce = 16;
// See Note [Floods of connections].
constexpr std::int64_t kBurst = 4096;
constexpr std::int64_t kPerBeat = 1024;

/// A name that nobody can guess.
std::string random_name() {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string name = "gossamer-";
  for (const std::byte byte : random_nonce()) {
    name += kDigits[std::to_integer<std::size_t>(byte) >> 4U];
    name += kDigits[std::to_integer<std::size_t>(byte) & 15U];
  }
  return name;
}

}  // namespace

AcceptorOptions acceptor_options(const NetOptions& options, std::shared_ptr<const TlsKeys> keys) {
  AcceptorOptions acceptor;
  acceptor.ports = ports_of_user(std::getenv("GOSSAMER_PORTS"));
  acceptor.own.rank = acceptor.own.member = static_cast<std::uint64_t>(options.rank);
  acceptor.own.generation = options.generation;
  acceptor.token = options.token;
  acceptor.address = options.address;
  acceptor.authenticates = options.authenticates;
  acceptor.keys = std::move(keys);
  return acceptor;
}

Acceptor::Acceptor(AcceptorOptions options, EventLoop& loop)
    : own_(std::move(options.own)),
      token_(std::move(options.token)),
      keys_(std::move(options.keys)),
      authenticates_(options.authenticates),
      name_(random_name()),
      loop_(loop),
      local_listener_(PacketSocket::listen(name_)),
      allowance_(kBurst) {
  if (!options.address.empty()) {
    stream_listener_ = listen_for_streams(options.address, options.ports);
  }
  watch_listeners();
}

std::optional<AcceptedConnection> Acceptor::handle(EventLoop::Key key) {
  if (key.kind == EventLoop::Kind::local_listener) accept_local();
  if (key.kind == EventLoop::Kind::stream_listener) accept_streams();
  const auto found = unverified_.find(key.number);
  if (key.kind != EventLoop::Kind::unverified || found == unverified_.end()) return std::nullopt;
  Unverified& unverified = found->second;
  bool leaves = false;
  const int descriptor = unverified.descriptor();
  auto accepted =
      unverified.stream ? handle_stream(unverified, leaves) : handle_local(unverified, leaves);
  if (accepted) ++allowance_;
  if (accepted || leaves) {
    loop_.forget(descriptor);
    unverified_.erase(found);
  }
  return accepted;
}

void Acceptor::accept_local() {
  for (int i = 0; i < kAcceptedAtOnce && may_accept(); ++i) {
    PacketSocket next = local_listener_.accept();
    if (!next) return rest_if_full();
    Unverified unverified{.socket = std::move(next), .stream = {}, .nonce = random_nonce()};
    const HandshakeFrame frame = make_challenge(unverified.nonce);
    unverified.socket.send(frame.header, frame.text, -1);
    add(std::move(unverified));
  }
}

void Acceptor::accept_streams() {
  for (int i = 0; i < kAcceptedAtOnce && may_accept(); ++i) {
    Descriptor next = accept_stream(stream_listener_.socket);
    if (!next) return rest_if_full();
    std::string host = host_of_peer(next.get());
    Unverified unverified{.socket = {},
                          .stream = Stream(std::move(next), keys_, Tls::End::accepts),
                          .nonce = random_nonce(),
                          .host = std::move(host)};
    const HandshakeFrame frame = make_challenge(unverified.nonce, authenticates_);
    unverified.stream.send(frame.header, frame.text);
    unverified.stream.write();
    add(std::move(unverified));
  }
}

bool Acceptor::may_accept() {
  if (allowance_ <= 0) rest();
  return allowance_ > 0;
}

/// A connection that cannot be accepted because no descriptors are left stays in the queue, which
/// would be an event for ever.
void Acceptor::rest_if_full() {
  if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) rest();
}

void Acceptor::rest() {
  rests_ = true;
  loop_.forget(local_listener_.descriptor());
  if (stream_listener_.socket) loop_.forget(stream_listener_.socket.get());
}

void Acceptor::watch_listeners() {
  loop_.watch(local_listener_.descriptor(), {EventLoop::Kind::local_listener, 0}, false);
  if (!stream_listener_.socket) return;
  loop_.watch(stream_listener_.socket.get(), {EventLoop::Kind::stream_listener, 0}, false);
}

void Acceptor::drop_one() {
  std::map<std::string_view, std::size_t> waiting;
  for (const auto& [number, unverified] : unverified_) ++waiting[unverified.host];
  const auto most = std::ranges::max_element(waiting, {}, [](const auto& e) { return e.second; });
  const auto oldest = std::ranges::find_if(
      unverified_, [&](const auto& entry) { return entry.second.host == most->first; });
  loop_.forget(oldest->second.descriptor());
  unverified_.erase(oldest);
}

void Acceptor::add(Unverified unverified) {
  --allowance_;
  if (unverified_.size() >= kMostUnverified) drop_one();
  unverified.limit = Clock::now() + kTimeToVerify;
  loop_.watch(unverified.descriptor(), {EventLoop::Kind::unverified, ++last_unverified_}, false);
  unverified_.emplace(last_unverified_, std::move(unverified));
}

std::optional<Handshake> Acceptor::verify(const Unverified& unverified, const FrameHeader& header,
                                          std::span<const std::byte> text) const {
  const Handshake before{.initiator = {},
                         .responder = own_.rank,
                         .responder_nonce = unverified.nonce,
                         .responder_authenticates = authenticates_ && unverified.stream};
  return read_hello(token_, before, header, text);
}

/// A connection of a verified worker is answered by a proof, and may bring all other frames.
std::optional<AcceptedConnection> Acceptor::handle_local(Unverified& unverified,
                                                         bool& leaves) const {
  FrameHeader header;
  std::vector<std::byte> text;
  Descriptor descriptor;
  const PacketResult result = unverified.socket.receive(header, text, descriptor);
  if (result == PacketResult::later) return std::nullopt;
  const auto handshake =
      result == PacketResult::done ? verify(unverified, header, text) : std::nullopt;
  leaves = !handshake;
  if (!handshake) return std::nullopt;
  const HandshakeFrame frame = make_welcome(token_, *handshake, own_.generation);
  unverified.socket.send(frame.header, frame.text, -1);
  return AcceptedConnection{
      .identity = handshake->initiator, .socket = std::move(unverified.socket), .stream = {}};
}

/// The same over TCP.
std::optional<AcceptedConnection> Acceptor::handle_stream(Unverified& unverified,
                                                          bool& leaves) const {
  Stream& stream = unverified.stream;
  bool has_come = false;
  std::optional<Handshake> handshake;
  const auto take_first = [&](const FrameHeader& header, std::span<const std::byte> text) {
    stream.pause();
    has_come = true;
    handshake = verify(unverified, header, text);
  };
  const auto refuse = [&](const FrameHeader&) {
    stream.pause();
    has_come = true;
    return std::span<std::byte>();
  };
  stream.read({.frame = take_first, .landing = refuse, .landed = [](const FrameHeader&) {}});
  if (!has_come) stream.write();  // after a handshake of TLS, the challenge
  leaves = has_come || stream.has_ended();
  if (!handshake) return std::nullopt;
  const HandshakeFrame frame = make_welcome(token_, *handshake, own_.generation);
  stream.send(frame.header, frame.text);
  const SessionKeys keys = session_keys(token_, *handshake);
  stream.authenticate(keys.responder, keys.initiator, handshake->authenticates());
  return AcceptedConnection{
      .identity = handshake->initiator, .socket = {}, .stream = std::move(stream)};
}

void Acceptor::beat(Deadline now) {
  allowance_ = std::min(allowance_ + kPerBeat, kBurst);
  if (std::exchange(rests_, false)) watch_listeners();
  std::erase_if(unverified_, [&](auto& entry) {
    if (now < entry.second.limit) return false;
    loop_.forget(entry.second.descriptor());
    return true;
  });
}

}  // namespace gossamer
