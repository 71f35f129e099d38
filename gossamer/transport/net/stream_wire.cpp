#include "gossamer/transport/net/stream_wire.h"

#include <cerrno>
#include <map>
#include <unordered_map>
#include <utility>

#include "gossamer/base/errors.h"
#include "gossamer/transport/net/acceptor.h"
#include "gossamer/transport/net/peer_state.h"
#include "gossamer/transport/net/ready_receives.h"
#include "gossamer/transport/net/stream.h"
#include "gossamer/transport/request_table.h"

namespace gossamer {
namespace {

// For the first handshake.
constexpr std::chrono::seconds kPatience{30};

const Ending kCorrupt{.here = "what came from the peer was changed on the way",
                      .there = "what was sent to the peer was changed on the way"};

class StreamWire final : public Wire {
 public:
  StreamWire(PeerState& state, StreamAddress address, std::shared_ptr<const TlsKeys> keys);

  void post(const NetOperation::Pointer& operation, const NetPayload& payload) override;
  void withdraw(NetOperation& operation) override;
  void accept(AcceptedConnection&& accepted) override;
  void handle(EventLoop::Kind kind) override;
  void maintain(const Upkeep& upkeep) override;
  void close(const Ending& ending, std::optional<Deadline> linger) override;

 private:
  using Pointer = NetOperation::Pointer;

  /// Of the connection that this worker makes.
  enum class Connecting { not_yet, done, again };

  void connect();
  void send_alive(Deadline idle_since);
  void watch(const Upkeep& upkeep, Stream& stream, EventLoop::Kind kind);
  void lose(EventLoop::Kind kind, const Stream& stream);
  void end(Direction direction, const Failure& reason);
  void end(const Failure& reason);
  void end_over(EventLoop::Kind kind, const Failure& reason);

  void wait_for(const Pointer& receive);
  void send_ready(const NetOperation& receive);
  void begin_if_ready(const Pointer& send);
  void begin(const Pointer& send, const ReadyReceive& ready);
  void complete_sends();

  void handle_out(const FrameHeader& header, std::span<const std::byte> text);
  void handle_in(const FrameHeader& header, std::span<const std::byte> text);
  void handle_handshake(const FrameHeader& header, std::span<const std::byte> text);
  void handle_no_payload(const FrameHeader& header);
  void handle_ready(const FrameHeader& header);
  void handle_unready(const FrameHeader& header);
  std::span<std::byte> landing_of(const FrameHeader& header);
  void handle_landed(const FrameHeader& header);

  PeerState& state_;
  const StreamAddress address_;
  const std::shared_ptr<const TlsKeys> keys_;
  Connecting connecting_ = Connecting::not_yet;
  Deadline first_try_ = {};
  Initiator initiator_;  ///< over out_
  Stream out_;           ///< made by this worker, for what it receives
  Stream in_;            ///< made by the peer, for what this worker sends
  std::uint64_t last_number_ = 0;
  std::map<std::uint64_t, Pointer> landing_;              ///< receives, by number
  std::unordered_map<std::uint64_t, Pointer> streaming_;  ///< sends under way, by the peer's number
  ReadyReceives ready_;
};

StreamWire::StreamWire(PeerState& state, StreamAddress address, std::shared_ptr<const TlsKeys> keys)
    : state_(state),
      address_(std::move(address)),
      keys_(std::move(keys)),
      initiator_(initiator_options(state.options, "somebody else listens at " + address_.host)) {}

// --- connections ---------------------------------------------------------------------------------

void StreamWire::connect() {
  if (std::exchange(connecting_, Connecting::done) == Connecting::done) return;
  out_ = Stream(connect_stream(address_), keys_, Tls::End::connects);
  const Deadline now = Clock::now();
  state_.see(now);
  if (first_try_ == Deadline()) first_try_ = now;
  if (!out_) end("no way to " + address_.host);
}

void StreamWire::accept(AcceptedConnection&& accepted) {
  if (!accepted.stream || in_) return;
  in_ = std::move(accepted.stream);
  state_.see(Clock::now());
  if (state_.operations.has_ended()) {
    in_.send({.type = FrameType::bye}, bytes_of(kClosedByPeer));
  }
  in_.write();
  handle(EventLoop::Kind::in);  // what came with the hello
}

void StreamWire::close(const Ending& ending, std::optional<Deadline> linger) {
  if (!state_.operations.has_ended()) {
    for (Stream* stream : {&out_, &in_}) {
      stream->send({.type = FrameType::bye}, bytes_of(ending.there));
      stream->write();
    }
    end({ending.here, ending.fault});
  }
  if (!linger) return;
  out_.finish(*linger);
  in_.finish(*linger);
}

void StreamWire::end(const Failure& reason) {
  end(Direction::send, reason);
  end(Direction::receive, reason);
}

void StreamWire::end(Direction direction, const Failure& reason) {
  if (direction == Direction::send) complete_sends();  // whatever the peer does next
  if (!state_.operations.end(direction, reason)) return;
  if (direction == Direction::receive) {
    for (const auto& [number, receive] : landing_) out_.drop(number);
    return landing_.clear();
  }
  for (const auto& [number, send] : streaming_) in_.stop(number);
  streaming_.clear();
  ready_.clear();
}

/// See Note [Ends in order].
void StreamWire::end_over(EventLoop::Kind kind, const Failure& reason) {
  const bool is_out = kind == EventLoop::Kind::out;
  if (!(is_out ? in_ : out_)) return end(reason);
  end(is_out ? Direction::receive : Direction::send, reason);
}

void StreamWire::maintain(const Upkeep& upkeep) {
  const bool is_beat = upkeep.idle_since.has_value();
  if (upkeep.connects || (is_beat && connecting_ == Connecting::again)) connect();
  if (is_beat) send_alive(*upkeep.idle_since);
  complete_sends();
  watch(upkeep, out_, EventLoop::Kind::out);
  watch(upkeep, in_, EventLoop::Kind::in);
}

void StreamWire::send_alive(Deadline idle_since) {
  for (Stream* stream : {&out_, &in_}) {
    const bool may_send = stream == &in_ || initiator_.has_sent_hello();
    if (*stream && may_send && stream->last_sent() < idle_since) {
      stream->send({.type = FrameType::alive});
      stream->write();
    }
  }
}

void StreamWire::watch(const Upkeep& upkeep, Stream& stream, EventLoop::Kind kind) {
  if (!stream) return;
  if (stream.is_overfull()) close(kTooMuch, std::nullopt);
  if (stream.has_ended()) {
    lose(kind, stream);
    upkeep.loop.forget(stream.descriptor());
    return stream.reset();
  }
  if (!upkeep.watches) return upkeep.loop.forget(stream.descriptor());
  const auto number = static_cast<std::uint32_t>(state_.options.peer);
  upkeep.loop.watch(stream.descriptor(), {kind, number}, stream.is_behind());
}

/// A connection has ended, which a read or a write has noticed.
void StreamWire::lose(EventLoop::Kind kind, const Stream& stream) {
  const bool has_met = kind == EventLoop::Kind::in || initiator_.is_verified() ||
                       state_.operations.has_ended(Direction::receive);
  const Fault fault = stream.is_unheard() ? Fault::silent : state_.fault_of_end();
  if (has_met) return end_over(kind, {stream.reason(), fault});
  if (!stream.tls_failure().empty()) {
    return close(
        {"what listens at " + address_.host + " does not open TLS with this job's token (" +
             stream.tls_failure() + "); give tls and the token to all workers alike",
         "the peer could not open TLS with this worker"},
        std::nullopt);
  }
  const bool is_refused = stream.error() == ECONNREFUSED;  // nobody listens there any more
  if (is_refused || Clock::now() > first_try_ + kPatience) {
    return close({stream.reason(), "the peer found no way to this worker", fault}, std::nullopt);
  }
  initiator_.restart();
  connecting_ = Connecting::again;
}

// --- operations ----------------------------------------------------------------------------------

void StreamWire::post(const Pointer& operation, const NetPayload& payload) {
  if (state_.operations.fail_if_ended(operation)) return;
  connect();
  if (state_.operations.fail_if_ended(operation)) return;
  state_.operations.add(operation);
  if (!operation->sending) {
    wait_for(operation);
    return out_.write();
  }
  operation->payload = payload.bytes;
  begin_if_ready(operation);
  in_.write();
}

/// Under a number of its own; the peer is told once it knows who this worker is.
void StreamWire::wait_for(const Pointer& receive) {
  receive->number = ++last_number_;
  landing_.emplace(last_number_, receive);
  if (initiator_.has_sent_hello()) send_ready(*receive);
}

void StreamWire::send_ready(const NetOperation& receive) {
  out_.send({.type = FrameType::ready,
             .tag = receive.tag,
             .number = receive.number,
             .bytes = receive.bytes});
}

void StreamWire::begin_if_ready(const Pointer& send) {
  if (const auto ready = ready_.take(send->tag)) begin(send, *ready);
}

/// The receive of this send is there.
void StreamWire::begin(const Pointer& send, const ReadyReceive& ready) {
  if (send->bytes != ready.bytes) {
    in_.send({.type = FrameType::refuse, .number = ready.number, .bytes = send->bytes});
    in_.write();
    return state_.operations.fail(send, size_mismatch(send->bytes, ready.bytes));
  }
  state_.frames.count_use();
  send->number = ready.number;
  send->taken = true;
  streaming_.emplace(ready.number, send);
  in_.start(ready.number, send->payload);
}

/// Ends the sends whose payloads have left.
void StreamWire::complete_sends() {
  for (const std::uint64_t number : in_.take_finished()) {
    const auto found = streaming_.find(number);
    if (found == streaming_.end()) continue;
    const Pointer send = found->second;
    streaming_.erase(found);
    state_.operations.count_sent(send->bytes);
    state_.operations.complete(send);
  }
}

void StreamWire::withdraw(NetOperation& operation) {
  if (operation.state != Status::State::pending) return;
  if (operation.sending) {
    if (!operation.taken) return;
    streaming_.erase(operation.number);
    in_.stop(operation.number);
    in_.send({.type = FrameType::stopped, .number = operation.number});
    in_.write();
    return;
  }
  landing_.erase(operation.number);
  out_.drop(operation.number);
  if (!initiator_.has_sent_hello()) return;
  out_.send({.type = FrameType::unready, .number = operation.number});
  out_.write();
}

// --- frames that come ----------------------------------------------------------------------------

void StreamWire::handle(EventLoop::Kind kind) {
  const bool is_out = kind == EventLoop::Kind::out;
  Stream& stream = is_out ? out_ : in_;
  if (kind == EventLoop::Kind::process || !stream) return;
  stream.write();
  const StreamHandlers handlers{
      .frame =
          [&](const FrameHeader& header, std::span<const std::byte> text) {
            state_.frames.count();
            is_out ? handle_out(header, text) : handle_in(header, text);
          },
      .landing =
          [&](const FrameHeader& header) {
            return is_out ? landing_of(header) : std::span<std::byte>();
          },
      .landed =
          [&](const FrameHeader& header) {
            if (is_out) handle_landed(header);
          }};
  stream.read(handlers);
  state_.see(stream.last_received());
  stream.write();  // what the frames have begun
  complete_sends();
  if (stream.is_corrupt()) close(kCorrupt, std::nullopt);
}

void StreamWire::handle_out(const FrameHeader& header, std::span<const std::byte> text) {
  if (header.type == FrameType::bye)
    return end_over(EventLoop::Kind::out, said_by_peer(text_of(text)));
  const auto is = [&](FrameType type) { return header.type == type; };
  const bool is_of_handshake = is(FrameType::challenge) || is(FrameType::welcome);
  if (is_of_handshake || !initiator_.is_verified()) return handle_handshake(header, text);
  if (is(FrameType::refuse) || is(FrameType::stopped)) handle_no_payload(header);
}

/// Proves who this is, and tells what it waits for.
void StreamWire::handle_handshake(const FrameHeader& header, std::span<const std::byte> text) {
  const Initiator::Step step = initiator_.take(header, text);
  if (!step.failure.empty()) return end(step.failure);
  if (!step.hello) return;
  out_.send(step.hello->header, step.hello->text);
  const SessionKeys keys = initiator_.keys();
  out_.authenticate(keys.initiator, keys.responder, initiator_.authenticates());
  for (const auto& [number, receive] : landing_) send_ready(*receive);
}

void StreamWire::handle_in(const FrameHeader& header, std::span<const std::byte> text) {
  if (header.type == FrameType::bye)
    return end_over(EventLoop::Kind::in, said_by_peer(text_of(text)));
  if (state_.operations.has_ended(Direction::send)) return;
  if (header.type == FrameType::ready) return handle_ready(header);
  if (header.type == FrameType::unready) handle_unready(header);
}

/// Whatever is under way can be stopped by its number, so that has to be the only one.
void StreamWire::handle_ready(const FrameHeader& header) {
  const bool is_known = ready_.contains(header.number) || streaming_.contains(header.number);
  if (is_known) return close(kTwice, std::nullopt);
  const ReadyReceive ready{header.tag, header.number, header.bytes};
  const Pointer send = state_.operations.find(Direction::send, header.tag);
  if (send && !send->taken) return begin(send, ready);
  if (ready_.is_full()) return close(kTooMuch, std::nullopt);
  ready_.keep(ready);
}

/// A send that was under way waits for another receive.
void StreamWire::handle_unready(const FrameHeader& header) {
  ready_.drop(header.number);
  const auto found = streaming_.find(header.number);
  if (found == streaming_.end()) return;
  const Pointer send = found->second;
  streaming_.erase(found);
  in_.stop(header.number);
  send->taken = false;
  begin_if_ready(send);
}

/// The payload does not come: it has another size, or its sender has given up half-way and the
/// receive waits for another send.
void StreamWire::handle_no_payload(const FrameHeader& header) {
  const auto found = landing_.find(header.number);
  if (found == landing_.end()) return;
  const Pointer receive = found->second;
  landing_.erase(found);
  if (header.type == FrameType::refuse) {
    return state_.operations.fail(receive, size_mismatch(header.bytes, receive->bytes));
  }
  receive->landed = 0;
  wait_for(receive);
}

std::span<std::byte> StreamWire::landing_of(const FrameHeader& header) {
  const auto found = landing_.find(header.number);
  if (!initiator_.is_verified() || found == landing_.end()) {
    state_.frames.count();
    return {};
  }
  const NetOperation& receive = *found->second;
  if (header.offset != receive.landed || header.follows > receive.bytes - receive.landed) {
    end("the peer sent something else than was asked for");
    return {};
  }
  return {receive.landing + receive.landed, header.follows};
}

void StreamWire::handle_landed(const FrameHeader& header) {
  const auto found = landing_.find(header.number);
  if (!initiator_.is_verified() || found == landing_.end()) return;
  const Pointer receive = found->second;
  receive->landed += header.follows;
  if (receive->landed < receive->bytes) return;
  landing_.erase(found);
  state_.operations.complete(receive, {receive->landing, receive->bytes});
}

}  // namespace

MakeWire stream_wire(StreamAddress address, std::shared_ptr<const TlsKeys> keys) {
  return [address = std::move(address), keys = std::move(keys)](PeerState& state) {
    return std::make_unique<StreamWire>(state, address, keys);
  };
}

}  // namespace gossamer
