#include "gossamer/transport/net/reception.h"

#include <utility>

namespace gossamer {
namespace {

constexpr std::chrono::seconds kIntroduction{5};
constexpr std::size_t kMostStrangers = 256;

/// A word that nobody can guess.
std::string random_name() {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string name = "gossamer-";
  for (const std::byte byte : random_nonce()) {
    name += kDigits[std::to_integer<std::size_t>(byte) >> 4U];
    name += kDigits[std::to_integer<std::size_t>(byte) & 15U];
  }
  return name;
}

/// What follows hello: `before` bytes, then the card. Nothing where the lengths differ.
std::optional<Introduction> introduction_of(const Words& words, std::span<const std::byte> text,
                                            std::size_t before) {
  if (text.size() < before || text.size() - before != words.offset) return std::nullopt;
  return Introduction{
      .rank = words.number, .generation = words.bytes, .card = text_of(text.subspan(before))};
}

}  // namespace

Reception::Reception(ReceptionOptions options, EventLoop& loop)
    : own_(std::move(options.own)),
      token_(std::move(options.token)),
      keys_(std::move(options.keys)),
      name_(random_name()),
      loop_(loop),
      door_(PacketSocket::listen(name_)) {
  loop_.watch(door_.descriptor(), {EventLoop::Kind::door, 0}, false);
  if (options.address.empty()) return;
  stream_door_ = listen_for_streams(options.address);
  loop_.watch(stream_door_.socket.get(), {EventLoop::Kind::stream_door, 0}, false);
}

std::optional<Arrival> Reception::hear(EventLoop::Key key) {
  if (key.kind == EventLoop::Kind::door) open_door();
  if (key.kind == EventLoop::Kind::stream_door) open_stream_door();
  const auto found = strangers_.find(key.number);
  if (key.kind != EventLoop::Kind::stranger || found == strangers_.end()) return std::nullopt;
  Stranger& stranger = found->second;
  bool leaves = false;
  const int descriptor = stranger.descriptor();
  auto arrival = stranger.stream ? hear_stream(stranger, leaves) : hear_stranger(stranger, leaves);
  if (arrival || leaves) {
    loop_.forget(descriptor);
    strangers_.erase(found);
  }
  return arrival;
}

void Reception::open_door() {
  while (PacketSocket next = door_.accept()) admit({.socket = std::move(next), .stream = {}});
}

void Reception::open_stream_door() {
  while (Descriptor next = accept_stream(stream_door_.socket)) {
    Stranger stranger{.socket = {},
                      .stream = Stream(std::move(next), keys_, Tls::End::accepts),
                      .nonce = random_nonce()};
    stranger.stream.say({.say = Say::challenge}, stranger.nonce);
    stranger.stream.write();
    admit(std::move(stranger));
  }
}

void Reception::admit(Stranger stranger) {
  if (strangers_.size() >= kMostStrangers) return;  // which closes it
  stranger.limit = Clock::now() + kIntroduction;
  loop_.watch(stranger.descriptor(), {EventLoop::Kind::stranger, ++last_stranger_}, false);
  strangers_.emplace(last_stranger_, std::move(stranger));
}

/// Over a local socket the kernel has said whose process it is; the token itself follows hello.
std::optional<Arrival> Reception::hear_stranger(Stranger& stranger, bool& leaves) const {
  Words words;
  std::vector<std::byte> data;
  Descriptor descriptor;
  const PacketResult result = stranger.socket.receive(words, data, descriptor);
  if (result == PacketResult::later) return std::nullopt;
  const auto who = introduction_of(words, data, token_.size());
  const bool is_known =
      result == PacketResult::done && words.say == Say::hello && who &&
      are_equal(bytes_of(token_), std::span<const std::byte>(data).first(token_.size()));
  leaves = !is_known;
  if (!is_known) return std::nullopt;
  return Arrival{.who = *who, .socket = std::move(stranger.socket), .stream = {}};
}

/// Over TCP the first words prove that the stranger knows the token, and are answered by a proof.
std::optional<Arrival> Reception::hear_stream(Stranger& stranger, bool& leaves) const {
  bool has_spoken = false;
  std::optional<Introduction> who;
  std::vector<std::byte> nonce;
  const auto hear_first = [&](const Words& words, std::span<const std::byte> text) {
    stranger.stream.pause();
    has_spoken = true;
    const std::size_t size = stranger.nonce.size();
    if (words.say != Say::hello || text.size() < size) return;
    nonce.assign(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(size));
    const auto said = introduction_of(words, text, size + kProofBytes);
    if (!said) return;
    const auto proof = proof_of(token_, "hello", *said, stranger.nonce, nonce);
    if (are_equal(text.subspan(size, kProofBytes), proof)) who = said;
  };
  const auto refuse = [&](const Words&) {
    stranger.stream.pause();
    has_spoken = true;
    return std::span<std::byte>();
  };
  stranger.stream.read({.heard = hear_first, .landing = refuse, .landed = [](const Words&) {}});
  if (!has_spoken) stranger.stream.write();  // after a handshake of TLS, the challenge
  leaves = has_spoken || stranger.stream.has_ended();
  if (!who) return std::nullopt;
  stranger.stream.say({.say = Say::welcome, .bytes = own_.generation},
                      proof_of(token_, "welcome", own_, nonce, nonce));
  return Arrival{.who = *who, .socket = {}, .stream = std::move(stranger.stream)};
}

void Reception::beat(Deadline now) {
  std::erase_if(strangers_, [&](auto& entry) {
    if (now < entry.second.limit) return false;
    loop_.forget(entry.second.descriptor());
    return true;
  });
}

}  // namespace gossamer
