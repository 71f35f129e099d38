#include "gossamer/transport/net/stream_peer.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "gossamer/base/errors.h"
#include "gossamer/transport/request_table.h"

namespace gossamer {
namespace {

// For the first meeting.
constexpr std::chrono::seconds kPatience{30};

const Ending kSpoiled{.here = "what came from the peer was changed on the way",
                      .there = "what was sent to the peer was changed on the way"};

std::string reason_of(const Stream& stream) {
  const std::string reason = "the peer has ended, or the link to it";
  if (!stream.tls_failure().empty()) return reason + " (TLS: " + stream.tls_failure() + ")";
  return stream.error() == 0 ? reason : reason + " (" + std::strerror(stream.error()) + ")";
}

}  // namespace

bool StreamPeer::reach() {
  if (has_connected_) return false;
  has_connected_ = true;
  out_ = Stream(connect_stream(address_), keys_, Tls::End::connects);
  last_heard_ = Clock::now();
  if (first_try_ == Deadline()) first_try_ = last_heard_;
  return !out_ && end("no way to " + address_.host);
}

bool StreamPeer::send(const Pointer& operation, const NetPayload& payload) {
  if (refused(*operation)) return true;
  add_pending(operation);
  operation->payload = payload.bytes;
  const bool any = begin_if_ready(operation);
  in_.write();
  return any;
}

bool StreamPeer::begin_if_ready(const Pointer& send) {
  const auto ready = ready_.find(send->tag);
  if (ready == ready_.end()) return false;
  const Ready found = ready->second;
  ready_tags_.erase(found.number);
  ready_.erase(ready);
  return begin(send, found);
}

/// The receive of this send is there.
bool StreamPeer::begin(const Pointer& send, const Ready& ready) {
  if (send->bytes != ready.bytes) {
    in_.say({.say = Say::refuse, .number = ready.number, .bytes = send->bytes});
    in_.write();
    fail(*send, size_mismatch(send->bytes, ready.bytes));
    sends_.erase(send->tag);
    return true;
  }
  count_use();
  send->number = ready.number;
  send->taken = true;
  streaming_.emplace(ready.number, send);
  in_.start(ready.number, send->payload);
  return false;
}

/// Ends the sends whose payloads have left.
bool StreamPeer::finish_sends() {
  const std::vector<std::uint64_t> finished = in_.take_finished();
  for (const std::uint64_t number : finished) {
    const auto found = streaming_.find(number);
    if (found == streaming_.end()) continue;
    const Pointer send = found->second;
    streaming_.erase(found);
    sends_.erase(send->tag);
    send->state = Status::State::done;
    sent_ += static_cast<std::int64_t>(send->bytes);
  }
  return !finished.empty();
}

bool StreamPeer::receive(const Pointer& operation) {
  if (refused(*operation)) return true;
  add_pending(operation);
  operation->number = ++last_number_;
  landing_.emplace(last_number_, operation);
  if (greeted_) say_ready(*operation);
  out_.write();
  return false;
}

void StreamPeer::say_ready(NetOperation& receive) {
  out_.say(
      {.say = Say::ready, .tag = receive.tag, .number = receive.number, .bytes = receive.bytes});
}

void StreamPeer::release(NetOperation& operation) {
  if (operation.state != Status::State::pending) return;
  fail(operation, "released before it ended");
  if (operation.sending) {
    sends_.erase(operation.tag);
    if (!operation.taken) return;
    streaming_.erase(operation.number);
    in_.stop(operation.number);
    in_.say({.say = Say::stopped, .number = operation.number});
    in_.write();
    return;
  }
  receives_.erase(operation.tag);
  landing_.erase(operation.number);
  out_.drop(operation.number);
  if (!greeted_) return;
  out_.say({.say = Say::unready, .number = operation.number});
  out_.write();
}

bool StreamPeer::close(const Ending& ending) {
  if (is_closed()) return false;
  for (Stream* stream : {&out_, &in_}) {
    stream->say({.say = Say::bye}, bytes_of(ending.there));
    stream->write();
  }
  return end(ending.here);
}

void StreamPeer::forget_sends() {
  for (const auto& [number, send] : streaming_) in_.stop(number);
  streaming_.clear();
  ready_.clear();
  ready_tags_.clear();
}

void StreamPeer::forget_receives() {
  for (const auto& [number, receive] : landing_) out_.drop(number);
  landing_.clear();
}

void StreamPeer::finish(Deadline limit) {
  out_.finish(limit);
  in_.finish(limit);
}

bool StreamPeer::greet(Stream stream) {
  if (in_) return false;
  in_ = std::move(stream);
  last_heard_ = Clock::now();
  if (is_closed()) in_.say({.say = Say::bye}, bytes_of("the peer closed the connection"));
  in_.write();
  return true;
}

bool StreamPeer::say_alive(Deadline before) {
  const bool any = std::exchange(tries_again_, false) && reach();
  for (Stream* stream : {&out_, &in_}) {
    const bool may_speak = stream == &in_ || greeted_;
    if (*stream && may_speak && stream->last_said() < before) {
      stream->say({.say = Say::alive});
      stream->write();
    }
  }
  return any;
}

void StreamPeer::retire(EventLoop& loop) {
  is_retired_ = true;
  for (const Stream* stream : {&out_, &in_}) {
    if (*stream) loop.forget(stream->descriptor());
  }
}

bool StreamPeer::watch(EventLoop& loop) {
  if (is_retired_) return false;
  bool any = finish_sends();
  any = watch(loop, out_, EventLoop::Kind::out) || any;
  return watch(loop, in_, EventLoop::Kind::in) || any;
}

bool StreamPeer::watch(EventLoop& loop, Stream& stream, EventLoop::Kind kind) {
  if (!stream) return false;
  if (stream.is_overfull()) close(kTooMuch);
  if (!stream.has_ended()) {
    if (is_tiresome()) {
      loop.forget(stream.descriptor());  // until the next beat
      return false;
    }
    loop.watch(stream.descriptor(), {kind, static_cast<std::uint32_t>(peer_)}, stream.is_behind());
    return false;
  }
  const bool any = lose(kind, stream);
  loop.forget(stream.descriptor());
  stream.reset();
  return any;
}

bool StreamPeer::hear(EventLoop::Kind kind) {
  const bool is_out = kind == EventLoop::Kind::out;
  Stream& stream = is_out ? out_ : in_;
  if (!stream) return false;
  stream.write();
  bool any = false;
  const StreamListener listener{
      .heard =
          [&](const Words& words, std::span<const std::byte> text) {
            count_words();
            any = (is_out ? hear_out(words, text) : hear_in(words, text)) || any;
          },
      .landing =
          [&](const Words& words) { return is_out ? landing_of(words) : std::span<std::byte>(); },
      .landed = [&](const Words& words) { any = (is_out && hear_landed(words)) || any; }};
  stream.read(listener);
  last_heard_ = std::max(last_heard_, stream.last_heard());
  stream.write();  // what the news has begun
  any = finish_sends() || any;
  if (stream.is_spoiled()) any = close(kSpoiled) || any;
  return any;
}

/// A connection has ended, which whoever reads or whoever writes has noticed.
bool StreamPeer::lose(EventLoop::Kind kind, const Stream& stream) {
  const bool has_met = kind == EventLoop::Kind::in || trusted_ || closed_receives_;
  if (has_met) return end_over(kind, reason_of(stream));
  if (!stream.tls_failure().empty()) {
    return close({"what listens at " + address_.host +
                      " does not open TLS with this job's token (" + stream.tls_failure() +
                      "); give tls and the token to all workers alike",
                  "the peer could not open TLS with this worker"});
  }
  const bool is_refused = stream.error() == ECONNREFUSED;  // nobody listens there any more
  if (is_refused || Clock::now() > first_try_ + kPatience) {
    return close({reason_of(stream), "the peer found no way to this worker"});
  }
  has_connected_ = greeted_ = false;
  tries_again_ = true;
  return false;
}

/// See Note [Ends in order].
bool StreamPeer::end_over(EventLoop::Kind kind, const std::string& reason) {
  const bool is_out = kind == EventLoop::Kind::out;
  if (!(is_out ? in_ : out_)) return end(reason);
  return is_out ? end_receives(reason) : end_sends(reason);
}

bool StreamPeer::hear_out(const Words& words, std::span<const std::byte> text) {
  if (words.say == Say::bye) return end_over(EventLoop::Kind::out, text_of(text));
  if (words.say == Say::challenge) return answer(words, text);
  if (words.say == Say::welcome) return hear_welcome(words, text);
  if (!trusted_) return end("somebody else listens at " + address_.host);
  if (words.say == Say::refuse) return hear_refuse(words);
  if (words.say == Say::stopped) return hear_stopped(words);
  return false;
}

bool StreamPeer::hear_welcome(const Words& words, std::span<const std::byte> text) {
  if (trusted_) return false;
  const auto generation = generation_of(token_, meeting_, words, text);
  trusted_ = generation == generation_;
  if (trusted_) return false;
  return end(generation ? "the peer restarted" : "somebody else listens at " + address_.host);
}

/// Proves who this is, and says what it waits for.
bool StreamPeer::answer(const Words& words, std::span<const std::byte> text) {
  if (greeted_) return false;
  if (version_of(words) != kWireVersion) return end(other_version(words));
  const auto nonce = nonce_of(words, text);
  if (!nonce) return end("somebody else listens at " + address_.host);
  greeted_ = true;
  meeting_ = {.caller = own_,
              .called = static_cast<std::uint64_t>(peer_),
              .asked = *nonce,
              .told = random_nonce(),
              .asks = words.number != 0,
              .tells = authenticates_};
  const Greeting greeting = hello(token_, meeting_);
  out_.say(greeting.words, greeting.text);
  const SessionKeys keys = session_keys(token_, meeting_);
  out_.authenticate(keys.caller, keys.called, meeting_.authenticates());
  for (const auto& [number, receive] : landing_) say_ready(*receive);
  return false;
}

bool StreamPeer::hear_in(const Words& words, std::span<const std::byte> text) {
  if (words.say == Say::bye) return end_over(EventLoop::Kind::in, text_of(text));
  if (closed_sends_) return false;
  if (words.say == Say::ready) return hear_ready(words);
  if (words.say == Say::unready) return hear_unready(words);
  return false;
}

/// Whatever is under way can be stopped by its number, so that has to be the only one.
bool StreamPeer::hear_ready(const Words& words) {
  if (ready_tags_.contains(words.number) || streaming_.contains(words.number)) return close(kTwice);
  const auto send = sends_.find(words.tag);
  if (send == sends_.end() || send->second->taken) {
    if (ready_tags_.size() >= kMostOpen) return close(kTooMuch);
    ready_.insert_or_assign(words.tag, Ready{words.number, words.bytes});
    ready_tags_.emplace(words.number, words.tag);
    return false;
  }
  const Pointer operation = send->second;
  return begin(operation, {words.number, words.bytes});
}

void StreamPeer::forget_ready(std::uint64_t number) {
  const auto tag = ready_tags_.find(number);
  if (tag == ready_tags_.end()) return;
  const auto ready = ready_.find(tag->second);
  if (ready != ready_.end() && ready->second.number == number) ready_.erase(ready);
  ready_tags_.erase(tag);
}

/// A send that was under way waits for another receive.
bool StreamPeer::hear_unready(const Words& words) {
  forget_ready(words.number);
  const auto send = streaming_.find(words.number);
  if (send == streaming_.end()) return false;
  in_.stop(words.number);
  send->second->taken = false;
  const Pointer operation = send->second;
  streaming_.erase(send);
  return begin_if_ready(operation);
}

bool StreamPeer::hear_refuse(const Words& words) {
  const auto found = landing_.find(words.number);
  if (found == landing_.end()) return false;
  const Pointer receive = found->second;
  landing_.erase(found);
  receives_.erase(receive->tag);
  fail(*receive, size_mismatch(words.bytes, receive->bytes));
  return true;
}

/// The sender has given up half-way: the receive waits for another send.
bool StreamPeer::hear_stopped(const Words& words) {
  const auto found = landing_.find(words.number);
  if (found == landing_.end()) return false;
  const Pointer receive = found->second;
  landing_.erase(found);
  receive->landed = 0;
  receive->number = ++last_number_;
  landing_.emplace(receive->number, receive);
  say_ready(*receive);
  return false;
}

std::span<std::byte> StreamPeer::landing_of(const Words& words) {
  const auto found = landing_.find(words.number);
  if (!trusted_ || found == landing_.end()) {
    count_words();
    return {};
  }
  const NetOperation& receive = *found->second;
  if (words.offset != receive.landed || words.follows > receive.bytes - receive.landed) {
    end("the peer sent something else than was asked for");
    return {};
  }
  return {receive.landing + receive.landed, words.follows};
}

bool StreamPeer::hear_landed(const Words& words) {
  const auto found = landing_.find(words.number);
  if (!trusted_ || found == landing_.end()) return false;
  const Pointer receive = found->second;
  receive->landed += words.follows;
  if (receive->landed < receive->bytes) return false;
  landing_.erase(found);
  receives_.erase(receive->tag);
  receive->content = {receive->landing, receive->bytes};
  receive->arrived = Clock::now();
  receive->state = Status::State::done;
  received_ += static_cast<std::int64_t>(receive->bytes);
  return true;
}

}  // namespace gossamer
