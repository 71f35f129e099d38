#include "gossamer/transport/net/local_peer.h"

#include <algorithm>

#include "gossamer/base/errors.h"
#include "gossamer/transport/request_table.h"

namespace gossamer {
namespace {

// So that one connection does not keep the others waiting.
constexpr int kPacketsAtOnce = 64;

}  // namespace

bool LocalPeer::reach() {
  if (has_connected_) return false;
  has_connected_ = true;
  PacketSocket socket = PacketSocket::connect(address_);
  if (!socket) return end("the peer has left");
  if (!socket.is_of_this_user()) return end("a process of another user has the peer's name");
  out_ = Connection(std::move(socket), true);
  last_heard_ = Clock::now();
  return false;
}

/// Proves who this is, as Note [Meeting] says.
bool LocalPeer::answer(const Words& words, std::span<const std::byte> text) {
  if (greeted_) return false;
  if (version_of(words) != kWireVersion) return end(other_version(words));
  const auto nonce = nonce_of(words, text);
  if (!nonce) return end("somebody else has the peer's name");
  greeted_ = true;
  meeting_ = {.caller = own_,
              .called = static_cast<std::uint64_t>(peer_),
              .asked = *nonce,
              .told = random_nonce(),
              .asks = words.number != 0};
  out_.greet(hello(token_, meeting_));
  return false;
}

bool LocalPeer::hear_welcome(const Words& words, std::span<const std::byte> text) {
  if (trusted_) return false;
  const auto generation = generation_of(token_, meeting_, words, text);
  trusted_ = generation == generation_;
  if (trusted_) {
    out_.speak();
    return false;
  }
  return end(generation ? "the peer restarted" : "somebody else has the peer's name");
}

/// The number under which the peer knows a memory.
std::uint32_t LocalPeer::announce(const std::shared_ptr<const SharedMemory>& memory) {
  const auto known = announced_.find(memory);
  if (known != announced_.end()) return known->second;
  forget_memories();
  announced_.emplace(memory, ++last_memory_);
  out_.say({.say = Say::memory, .number = last_memory_, .bytes = memory->size()}, {}, memory);
  return last_memory_;
}

void LocalPeer::forget_memories() {
  std::erase_if(announced_, [&](const auto& entry) {
    if (!entry.first.expired()) return false;
    out_.say({.say = Say::forget, .number = entry.second});
    return true;
  });
}

bool LocalPeer::send(const Pointer& operation, const NetPayload& payload) {
  if (refused(*operation)) return true;
  add_pending(operation);
  operation->number = ++last_offer_;
  lent_.emplace(last_offer_, Lent{operation, payload.keeps, payload.memory == nullptr});
  Words words{.say = Say::offer,
              .tag = operation->tag,
              .number = last_offer_,
              .bytes = payload.bytes.size()};
  if (payload.memory == nullptr) {
    out_.say(words, payload.bytes);
    return false;
  }
  words.memory = announce(payload.memory);
  words.offset = static_cast<std::uint64_t>(payload.bytes.data() - payload.memory->data());
  out_.say(words);
  return false;
}

bool LocalPeer::receive(const Pointer& operation) {
  const std::optional<Offer> offer = offers_.take(operation->tag);
  if (!offer && refused(*operation)) return true;
  add_pending(operation);
  if (!offer) return false;
  receives_.erase(operation->tag);
  return match(*offer, *operation);
}

/// Ends a receive by an offer with its tag.
bool LocalPeer::match(const Offer& offer, NetOperation& receive) {
  count_use();
  const Words& words = offer.words;
  if (words.bytes != receive.bytes) {
    say_about(Say::refuse, words.number, receive.bytes);
    fail(receive, size_mismatch(words.bytes, receive.bytes));
    return true;
  }
  if (words.memory == 0) {
    std::copy(offer.data.begin(), offer.data.end(), receive.landing);
    receive.content = {receive.landing, receive.bytes};
  } else {
    receive.borrowed = offer.memory;
    receive.content = {receive.borrowed->data() + words.offset, receive.bytes};
  }
  receive.number = words.number;
  receive.state = Status::State::done;
  receive.arrived = Clock::now();
  received_ += static_cast<std::int64_t>(receive.bytes);
  say_about(Say::taken, words.number);
  return true;
}

void LocalPeer::say_about(Say say, std::uint64_t offer, std::uint64_t bytes) {
  in_.say({.say = say, .number = offer, .bytes = bytes});
}

void LocalPeer::release(NetOperation& operation) {
  if (operation.borrowed) {
    say_about(Say::back, operation.number);
    operation.borrowed.reset();
  }
  if (operation.state != Status::State::pending) return;
  fail(operation, "released before it ended");
  if (!operation.sending) {
    receives_.erase(operation.tag);
    return;
  }
  sends_.erase(operation.tag);
  const auto lent = lent_.find(operation.number);
  if (lent != lent_.end()) lent->second.send = nullptr;  // the memory stays until it is back
  if (!operation.taken) out_.say({.say = Say::withdraw, .number = operation.number});
}

bool LocalPeer::close(const Ending& ending) {
  if (is_closed()) return false;
  for (Connection* connection : {&out_, &in_}) {
    connection->say({.say = Say::bye}, bytes_of(ending.there));
  }
  return end(ending.here);
}

bool LocalPeer::greet(PacketSocket socket) {
  if (in_) return false;
  Connection connection(std::move(socket));
  if (is_closed()) {
    connection.say({.say = Say::bye}, bytes_of("the peer closed the connection"));
    return true;
  }
  in_ = std::move(connection);
  last_heard_ = Clock::now();
  return true;
}

void LocalPeer::retire(EventLoop& loop) {
  is_retired_ = true;
  for (const Connection* connection : {&out_, &in_}) {
    if (*connection) loop.forget(connection->socket().descriptor());
  }
  loop.forget_process(static_cast<std::uint32_t>(peer_));
}

bool LocalPeer::watch(EventLoop& loop) {
  if (is_retired_) return false;
  bool any = false;
  if (out_.is_overfull() || in_.is_overfull()) any = close(kTooMuch);
  watch(loop, out_, EventLoop::Kind::out);
  watch(loop, in_, EventLoop::Kind::in);
  return any;
}

void LocalPeer::watch(EventLoop& loop, Connection& connection, EventLoop::Kind kind) {
  if (!connection) return;
  const int descriptor = connection.socket().descriptor();
  if (connection.has_ended()) {
    loop.forget(descriptor);
    connection.reset();
    return;
  }
  if (is_tiresome()) {
    loop.forget(descriptor);  // until the next beat
    return;
  }
  const auto number = static_cast<std::uint32_t>(peer_);
  const bool is_new = !loop.watches(descriptor);
  loop.watch(descriptor, {kind, number}, connection.is_behind());
  if (!is_new) return;
  // A child of the peer may hold the socket beyond its end; the process itself cannot hide it.
  loop.watch_process(connection.socket().process(), {EventLoop::Kind::process, number});
}

bool LocalPeer::hear(EventLoop::Kind kind) {
  Connection& connection = kind == EventLoop::Kind::out ? out_ : in_;
  if (!connection) return false;
  connection.flush();
  return hear(connection);
}

bool LocalPeer::hear(Connection& connection) {
  Words words;
  std::vector<std::byte> data;
  bool any = false;
  for (int i = 0; i < kPacketsAtOnce && connection; ++i) {
    Descriptor descriptor;
    const PacketResult result = connection.socket().receive(words, data, descriptor);
    if (result == PacketResult::later) break;
    if (result == PacketResult::starved) {
      return close({"this process has no descriptor left for the peer's memory; raise `ulimit -n`",
                    "the peer has no descriptors left"}) ||
             any;
    }
    if (result == PacketResult::ended) {
      connection.set_ended();
      if (&connection == &out_) lent_.clear();  // nobody is left who could read it
      return end_over(connection, "the peer has ended") || any;
    }
    last_heard_ = Clock::now();
    count_words();
    try {
      any = hear_one(connection, words, data, std::move(descriptor)) || any;
    } catch (const IoError& error) {
      any = end(error.what()) || any;
    }
  }
  return any;
}

/// See Note [Ends in order].
bool LocalPeer::end_over(const Connection& connection, const std::string& reason) {
  const bool is_out = &connection == &out_;
  if (!(is_out ? in_ : out_)) return end(reason);
  return is_out ? end_sends(reason) : end_receives(reason);
}

bool LocalPeer::bury() {
  bool any = false;
  for (Connection* connection : {&out_, &in_}) {
    while (*connection && !connection->has_ended() && connection->socket().has_news()) {
      any = hear(*connection) || any;
    }
  }
  return end("the peer has ended") || any;
}

bool LocalPeer::hear_one(Connection& connection, const Words& words, std::vector<std::byte>& data,
                         Descriptor descriptor) {
  const bool about_own = &connection == &out_;
  if (about_own && words.say == Say::challenge) return answer(words, data);
  if (about_own && words.say == Say::welcome) return hear_welcome(words, data);
  if (about_own && !trusted_) return end("somebody else has the peer's name");
  if (words.say == Say::bye) return end_over(connection, text_of(data));
  switch (words.say) {
    case Say::memory:
      if (about_own || closed_receives_) return false;
      if (mappings_.contains(words.number)) return close(kTwice);
      if (mappings_.size() >= kMostMemories) return close(kTooMuch);
      mappings_[words.number] = std::make_shared<SharedMapping>(std::move(descriptor), words.bytes);
      return false;
    case Say::forget:
      return !about_own && hear_forget(words);
    case Say::offer:
      return !about_own && hear_offer(words, data);
    case Say::withdraw:
      return !about_own && hear_withdraw(words);
    case Say::taken:
      return about_own && hear_taken(words);
    case Say::back:
      return about_own && hear_back(words);
    case Say::refuse:
      return about_own && hear_refuse(words);
    case Say::hello:
    case Say::alive:
    case Say::bye:
    case Say::challenge:
    case Say::welcome:
    case Say::ready:  // this and the following are said over streams
    case Say::unready:
    case Say::data:
    case Say::stopped:
      return false;
  }
  return false;
}

/// Else the mappings that stay would be as many as the peer likes.
bool LocalPeer::hear_forget(const Words& words) {
  const auto found = mappings_.find(words.number);
  if (found != mappings_.end() && found->second.use_count() > 1) {
    return close({"the peer took back memory in which it offers something",
                  "the peer still reads what was offered"});
  }
  mappings_.erase(words.number);
  return false;
}

bool LocalPeer::hear_withdraw(const Words& words) {
  if (offers_.drop(words.number)) say_about(Say::back, words.number);
  return false;
}

bool LocalPeer::hear_offer(const Words& words, std::vector<std::byte>& data) {
  if (closed_receives_) return false;
  const auto known = mappings_.find(words.memory);
  const auto memory = known == mappings_.end() ? nullptr : known->second;
  const bool is_there = words.memory == 0 ? data.size() == words.bytes
                                          : memory && words.offset <= memory->size() &&
                                                words.bytes <= memory->size() - words.offset;
  if (!is_there) return end("the peer offers memory that it has not given");
  const auto receive = receives_.find(words.tag);
  Offer offer{words, std::move(data), memory};
  if (receive == receives_.end()) {
    if (!offers_.keep(std::move(offer))) return close(kTwice);
    return offers_.is_too_much() && close(kTooMuch);
  }
  const Pointer operation = receive->second;
  receives_.erase(receive);
  return match(offer, *operation);
}

bool LocalPeer::hear_taken(const Words& words) {
  const auto lent = lent_.find(words.number);
  if (lent == lent_.end()) return false;
  count_use();
  const Pointer send = lent->second.send;
  if (send) {
    send->taken = true;
    sent_ += static_cast<std::int64_t>(send->bytes);
    if (!send->lends) {
      send->state = Status::State::done;
      sends_.erase(send->tag);
      lent->second.send = nullptr;
    }
  }
  if (lent->second.is_inline) lent_.erase(lent);
  return send != nullptr && !send->lends;
}

/// The send of an offer that is over; null where none waits for that.
LocalPeer::Pointer LocalPeer::take_lent(std::uint64_t number) {
  const auto lent = lent_.find(number);
  if (lent == lent_.end()) return nullptr;
  count_use();
  const Pointer send = lent->second.send;
  lent_.erase(lent);
  if (send) sends_.erase(send->tag);
  return send;
}

bool LocalPeer::hear_back(const Words& words) {
  const Pointer send = take_lent(words.number);
  if (send) send->state = Status::State::done;
  return send != nullptr;
}

bool LocalPeer::hear_refuse(const Words& words) {
  const Pointer send = take_lent(words.number);
  if (send) fail(*send, size_mismatch(send->bytes, words.bytes));
  return send != nullptr;
}

bool LocalPeer::say_alive(Deadline before) {
  for (Connection* connection : {&out_, &in_}) {
    if (*connection && connection->last_said() < before) connection->say({.say = Say::alive});
  }
  return false;
}

void LocalPeer::forget_sends() {
  for (auto& [number, lent] : lent_) lent.send = nullptr;
}

void LocalPeer::forget_receives() { offers_.clear(); }

}  // namespace gossamer
