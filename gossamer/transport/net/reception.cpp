#include "gossamer/transport/net/reception.h"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <string_view>
#include <utility>

namespace gossamer {
namespace {

constexpr std::chrono::seconds kIntroduction{5};
constexpr std::size_t kMostStrangers = 256;
// So that who has come already does not wait for all who come.
constexpr int kAtOnce = 16;

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

}  // namespace

ReceptionOptions reception_of(const NetOptions& options, std::shared_ptr<const TlsKeys> keys) {
  ReceptionOptions reception;
  reception.ports = ports_of_user(std::getenv("GOSSAMER_PORTS"));
  reception.own.rank = reception.own.member = static_cast<std::uint64_t>(options.rank);
  reception.own.generation = options.generation;
  reception.token = options.token;
  reception.address = options.address;
  reception.authenticates = options.authenticates;
  reception.keys = std::move(keys);
  return reception;
}

Reception::Reception(ReceptionOptions options, EventLoop& loop)
    : own_(std::move(options.own)),
      token_(std::move(options.token)),
      keys_(std::move(options.keys)),
      authenticates_(options.authenticates),
      name_(random_name()),
      loop_(loop),
      door_(PacketSocket::listen(name_)) {
  if (!options.address.empty()) stream_door_ = listen_for_streams(options.address, options.ports);
  watch_doors();
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
  for (int i = 0; i < kAtOnce; ++i) {
    PacketSocket next = door_.accept();
    if (!next) return rest();
    Stranger stranger{.socket = std::move(next), .stream = {}, .nonce = random_nonce()};
    const Greeting greeting = challenge(stranger.nonce);
    stranger.socket.send(greeting.words, greeting.text, -1);
    admit(std::move(stranger));
  }
}

void Reception::open_stream_door() {
  for (int i = 0; i < kAtOnce; ++i) {
    Descriptor next = accept_stream(stream_door_.socket);
    if (!next) return rest();
    std::string host = host_of_peer(next.get());
    Stranger stranger{.socket = {},
                      .stream = Stream(std::move(next), keys_, Tls::End::accepts),
                      .nonce = random_nonce(),
                      .host = std::move(host)};
    const Greeting greeting = challenge(stranger.nonce, authenticates_);
    stranger.stream.say(greeting.words, greeting.text);
    stranger.stream.write();
    admit(std::move(stranger));
  }
}

/// Who cannot be let in because no descriptors are left stays at the door, which would be news for
/// ever.
void Reception::rest() {
  if (errno != EMFILE && errno != ENFILE && errno != ENOBUFS && errno != ENOMEM) return;
  rests_ = true;
  loop_.forget(door_.descriptor());
  if (stream_door_.socket) loop_.forget(stream_door_.socket.get());
}

void Reception::watch_doors() {
  loop_.watch(door_.descriptor(), {EventLoop::Kind::door, 0}, false);
  if (!stream_door_.socket) return;
  loop_.watch(stream_door_.socket.get(), {EventLoop::Kind::stream_door, 0}, false);
}

void Reception::turn_one_away() {
  std::map<std::string_view, std::size_t> waiting;
  for (const auto& [number, stranger] : strangers_) ++waiting[stranger.host];
  const auto most = std::ranges::max_element(waiting, {}, [](const auto& e) { return e.second; });
  const auto oldest = std::ranges::find_if(
      strangers_, [&](const auto& entry) { return entry.second.host == most->first; });
  loop_.forget(oldest->second.descriptor());
  strangers_.erase(oldest);
}

void Reception::admit(Stranger stranger) {
  if (strangers_.size() >= kMostStrangers) turn_one_away();
  stranger.limit = Clock::now() + kIntroduction;
  loop_.watch(stranger.descriptor(), {EventLoop::Kind::stranger, ++last_stranger_}, false);
  strangers_.emplace(last_stranger_, std::move(stranger));
}

std::optional<Meeting> Reception::meeting_with(const Stranger& stranger, const Words& words,
                                               std::span<const std::byte> text) const {
  const bool asks = authenticates_ && stranger.stream;
  return meeting_of(token_, {.called = own_.rank, .asked = stranger.nonce, .asks = asks}, words,
                    text);
}

/// Who has proved to be a worker is answered by a proof, and may say all else.
std::optional<Arrival> Reception::hear_stranger(Stranger& stranger, bool& leaves) const {
  Words words;
  std::vector<std::byte> text;
  Descriptor descriptor;
  const PacketResult result = stranger.socket.receive(words, text, descriptor);
  if (result == PacketResult::later) return std::nullopt;
  const auto meeting =
      result == PacketResult::done ? meeting_with(stranger, words, text) : std::nullopt;
  leaves = !meeting;
  if (!meeting) return std::nullopt;
  const Greeting greeting = welcome(token_, *meeting, own_.generation);
  stranger.socket.send(greeting.words, greeting.text, -1);
  return Arrival{.who = meeting->caller, .socket = std::move(stranger.socket), .stream = {}};
}

/// The same over TCP.
std::optional<Arrival> Reception::hear_stream(Stranger& stranger, bool& leaves) const {
  bool has_spoken = false;
  std::optional<Meeting> meeting;
  const auto hear_first = [&](const Words& words, std::span<const std::byte> text) {
    stranger.stream.pause();
    has_spoken = true;
    meeting = meeting_with(stranger, words, text);
  };
  const auto refuse = [&](const Words&) {
    stranger.stream.pause();
    has_spoken = true;
    return std::span<std::byte>();
  };
  stranger.stream.read({.heard = hear_first, .landing = refuse, .landed = [](const Words&) {}});
  if (!has_spoken) stranger.stream.write();  // after a handshake of TLS, the challenge
  leaves = has_spoken || stranger.stream.has_ended();
  if (!meeting) return std::nullopt;
  const Greeting greeting = welcome(token_, *meeting, own_.generation);
  stranger.stream.say(greeting.words, greeting.text);
  const SessionKeys keys = session_keys(token_, *meeting);
  stranger.stream.authenticate(keys.called, keys.caller, meeting->authenticates());
  return Arrival{.who = meeting->caller, .socket = {}, .stream = std::move(stranger.stream)};
}

void Reception::beat(Deadline now) {
  if (std::exchange(rests_, false)) watch_doors();
  std::erase_if(strangers_, [&](auto& entry) {
    if (now < entry.second.limit) return false;
    loop_.forget(entry.second.descriptor());
    return true;
  });
}

}  // namespace gossamer
