#include "gossamer/transport/net/stream_peer.h"

#include <algorithm>

#include "gossamer/base/errors.h"
#include "gossamer/transport/request_table.h"

namespace gossamer {

/// Fails an operation that is posted to a closed peer. At the first time, connects.
bool StreamPeer::refused(const Pointer& operation) {
  if (!is_closed_for(*operation) && !has_connected_) {
    has_connected_ = true;
    out_ = Stream(connect_stream(address_));
    last_heard_ = Clock::now();
    if (!out_) end("no way to " + address_.host);
  }
  return fail_if_closed(*operation);
}

bool StreamPeer::send(const Pointer& operation, const NetPayload& payload) {
  if (refused(operation)) return true;
  add_pending(operation);
  operation->payload = payload.bytes;
  return begin_if_ready(operation) || finish_sends(in_.write());
}

bool StreamPeer::begin_if_ready(const Pointer& send) {
  const auto ready = ready_.find(send->tag);
  if (ready == ready_.end()) return false;
  const Ready found = ready->second;
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
  send->number = ready.number;
  send->taken = true;
  streaming_.emplace(ready.number, send);
  in_.start(ready.number, send->payload);
  return false;
}

bool StreamPeer::finish_sends(const std::vector<std::uint64_t>& finished) {
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
  if (refused(operation)) return true;
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

void StreamPeer::say_alive(Deadline before) {
  for (Stream* stream : {&out_, &in_}) {
    const bool may_speak = stream == &in_ || greeted_;
    if (*stream && may_speak && stream->last_said() < before) {
      stream->say({.say = Say::alive});
      stream->write();
    }
  }
}

void StreamPeer::watch(EventLoop& loop) {
  watch(loop, out_, EventLoop::Kind::out);
  watch(loop, in_, EventLoop::Kind::in);
}

void StreamPeer::watch(EventLoop& loop, Stream& stream, EventLoop::Kind kind) {
  if (!stream) return;
  if (!stream.has_ended()) {
    loop.watch(stream.descriptor(), {kind, static_cast<std::uint32_t>(peer_)}, stream.is_behind());
    return;
  }
  loop.forget(stream.descriptor());
  stream.reset();
}

bool StreamPeer::hear(EventLoop::Kind kind) {
  const bool is_out = kind == EventLoop::Kind::out;
  Stream& stream = is_out ? out_ : in_;
  if (!stream) return false;
  bool any = finish_sends(stream.write());
  const StreamListener listener{
      .heard =
          [&](const Words& words, std::span<const std::byte> text) {
            any = (is_out ? hear_out(words, text) : hear_in(words, text)) || any;
          },
      .landing =
          [&](const Words& words) { return is_out ? landing_of(words) : std::span<std::byte>(); },
      .landed = [&](const Words& words) { any = (is_out && hear_landed(words)) || any; }};
  stream.read(listener);
  last_heard_ = std::max(last_heard_, stream.last_heard());
  any = finish_sends(stream.write()) || any;  // what the news has begun
  if (stream.has_ended()) any = end_over(kind, "the peer has ended, or the link to it") || any;
  return any;
}

/// See Note [Ends in order].
bool StreamPeer::end_over(EventLoop::Kind kind, const std::string& reason) {
  const bool is_out = kind == EventLoop::Kind::out;
  if (!(is_out ? in_ : out_)) return end(reason);
  return is_out ? end_receives(reason) : end_sends(reason);
}

bool StreamPeer::hear_out(const Words& words, std::span<const std::byte> text) {
  if (words.say == Say::bye) return end_over(EventLoop::Kind::out, text_of(text));
  if (words.say == Say::challenge) return answer(text);
  if (words.say == Say::welcome) {
    trusted_ = are_equal(
        text, proof_of(token_, "welcome", static_cast<std::uint64_t>(peer_), nonce_, nonce_));
    return !trusted_ && end("somebody else listens at " + address_.host);
  }
  if (!trusted_) return end("somebody else listens at " + address_.host);
  if (words.say == Say::refuse) return hear_refuse(words);
  if (words.say == Say::stopped) return hear_stopped(words);
  return false;
}

/// Proves who this is, and says what it waits for.
bool StreamPeer::answer(std::span<const std::byte> nonce) {
  if (greeted_) return false;
  greeted_ = true;
  nonce_ = random_nonce();
  const auto rank = static_cast<std::uint64_t>(rank_);
  std::vector<std::byte> text(nonce_.begin(), nonce_.end());
  const std::vector<std::byte> proof = proof_of(token_, "hello", rank, nonce, nonce_);
  text.insert(text.end(), proof.begin(), proof.end());
  out_.say({.say = Say::hello, .number = rank}, text);
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

bool StreamPeer::hear_ready(const Words& words) {
  const auto send = sends_.find(words.tag);
  if (send == sends_.end() || send->second->taken) {
    ready_.insert_or_assign(words.tag, Ready{words.number, words.bytes});
    return false;
  }
  const Pointer operation = send->second;
  return begin(operation, {words.number, words.bytes});
}

/// A send that was under way waits for another receive.
bool StreamPeer::hear_unready(const Words& words) {
  std::erase_if(ready_, [&](const auto& entry) { return entry.second.number == words.number; });
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
  if (!trusted_ || found == landing_.end()) return {};
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
