#include "gossamer/transport/net/local_wire.h"

#include <algorithm>
#include <unordered_map>
#include <utility>
#include <vector>

#include "gossamer/base/errors.h"
#include "gossamer/transport/net/acceptor.h"
#include "gossamer/transport/net/announced_memories.h"
#include "gossamer/transport/net/kept_offers.h"
#include "gossamer/transport/net/packet_connection.h"
#include "gossamer/transport/net/peer_state.h"
#include "gossamer/transport/request_table.h"

namespace gossamer {
namespace {

// So that one connection does not keep the others waiting.
constexpr int kPacketsAtOnce = 64;

class LocalWire final : public Wire {
 public:
  LocalWire(PeerState& state, std::string name);

  void post(const NetOperation::Pointer& operation, const NetPayload& payload) override;
  void withdraw(NetOperation& operation) override;
  void accept(AcceptedConnection&& accepted) override;
  void handle(EventLoop::Kind kind) override;
  void maintain(const Upkeep& upkeep) override;
  void close(const Ending& ending, std::optional<Deadline> linger) override;

 private:
  using Pointer = NetOperation::Pointer;

  struct Lent {
    Pointer send;  ///< null once it has ended
    std::shared_ptr<const void> keeps;
    bool is_inline = false;
  };

  void connect();
  bool is_open_for(const Pointer& operation);
  void watch(const Upkeep& upkeep, PacketConnection& connection, EventLoop::Kind kind);
  void end(Direction direction, const Failure& reason);
  void end(const Failure& reason);
  void end_over(const PacketConnection& connection, const Failure& reason);

  void send_offer(const Pointer& send, const NetPayload& payload);
  void match(const Offer& offer, const Pointer& receive);
  void answer(FrameType type, std::uint64_t offer, std::uint64_t bytes = 0);

  void on_process_exit();
  void read(PacketConnection& connection);
  void handle_out(const FrameHeader& header, std::span<const std::byte> text);
  void handle_in(const FrameHeader& header, std::vector<std::byte>& data, Descriptor descriptor);
  void handle_handshake(const FrameHeader& header, std::span<const std::byte> text);
  void handle_memory(const FrameHeader& header, Descriptor descriptor);
  void handle_forget(const FrameHeader& header);
  void handle_offer(const FrameHeader& header, std::vector<std::byte>& data);
  void handle_taken(const FrameHeader& header);
  Pointer take_lent(std::uint64_t number);

  PeerState& state_;
  const std::string name_;
  bool has_connected_ = false;
  Initiator initiator_;   ///< over out_
  PacketConnection out_;  ///< made by this worker, for its offers
  PacketConnection in_;   ///< made by the peer, for the peer's

  std::uint64_t last_offer_ = 0;
  std::unordered_map<std::uint64_t, Lent> lent_;
  AnnouncedMemories memories_;

  KeptOffers offers_;
  std::unordered_map<std::uint64_t, std::shared_ptr<const SharedMapping>> mappings_;
};

LocalWire::LocalWire(PeerState& state, std::string name)
    : state_(state),
      name_(std::move(name)),
      initiator_(initiator_options(state.options, "somebody else has the peer's name")) {}

// --- connections ---------------------------------------------------------------------------------

void LocalWire::connect() {
  if (std::exchange(has_connected_, true)) return;
  PacketSocket socket = PacketSocket::connect(name_);
  if (!socket) return end({"the peer has left", state_.fault_of_end()});
  if (!socket.is_of_this_user()) return end("a process of another user has the peer's name");
  out_ = PacketConnection(std::move(socket), true);
  state_.see(Clock::now());
}

void LocalWire::accept(AcceptedConnection&& accepted) {
  if (!accepted.socket || in_) return;
  PacketConnection connection(std::move(accepted.socket));
  if (state_.operations.has_ended()) {
    connection.send({.type = FrameType::bye}, bytes_of(kClosedByPeer));
    return;
  }
  in_ = std::move(connection);
  state_.see(Clock::now());
}

void LocalWire::close(const Ending& ending, std::optional<Deadline>) {
  if (state_.operations.has_ended()) return;
  for (PacketConnection* connection : {&out_, &in_}) {
    connection->send({.type = FrameType::bye}, bytes_of(ending.there));
  }
  end({ending.here, ending.fault});
}

void LocalWire::end(const Failure& reason) {
  end(Direction::send, reason);
  end(Direction::receive, reason);
}

void LocalWire::end(Direction direction, const Failure& reason) {
  if (!state_.operations.end(direction, reason)) return;
  if (direction == Direction::receive) return offers_.clear();
  for (auto& [number, lent] : lent_) lent.send = nullptr;
}

/// See Note [Ends in order].
void LocalWire::end_over(const PacketConnection& connection, const Failure& reason) {
  const bool is_out = &connection == &out_;
  if (!(is_out ? in_ : out_)) return end(reason);
  end(is_out ? Direction::send : Direction::receive, reason);
}

void LocalWire::maintain(const Upkeep& upkeep) {
  if (upkeep.connects) connect();
  for (PacketConnection* connection : {&out_, &in_}) {
    if (upkeep.idle_since && *connection && connection->last_sent() < *upkeep.idle_since) {
      connection->send({.type = FrameType::alive});
    }
  }
  if (out_.is_overfull() || in_.is_overfull()) close(kTooMuch, std::nullopt);
  watch(upkeep, out_, EventLoop::Kind::out);
  watch(upkeep, in_, EventLoop::Kind::in);
}

void LocalWire::watch(const Upkeep& upkeep, PacketConnection& connection, EventLoop::Kind kind) {
  if (!connection) return;
  const int descriptor = connection.socket().descriptor();
  if (connection.has_ended() || !upkeep.watches) upkeep.loop.forget(descriptor);
  if (connection.has_ended()) return connection.reset();
  if (!upkeep.watches) return;
  const auto number = static_cast<std::uint32_t>(state_.options.peer);
  const bool is_new = !upkeep.loop.watches(descriptor);
  upkeep.loop.watch(descriptor, {kind, number}, connection.is_behind());
  if (!is_new) return;
  // A child of the peer may hold the socket beyond its end; the process itself cannot hide it.
  upkeep.loop.watch_process(connection.socket().process(), {EventLoop::Kind::process, number});
}

// --- operations ----------------------------------------------------------------------------------

/// Else it has failed.
bool LocalWire::is_open_for(const Pointer& operation) {
  if (state_.operations.fail_if_ended(operation)) return false;
  connect();
  return !state_.operations.fail_if_ended(operation);
}

void LocalWire::post(const Pointer& operation, const NetPayload& payload) {
  if (operation->sending) return send_offer(operation, payload);
  const std::optional<Offer> offer = offers_.take(operation->tag);
  if (!offer && !is_open_for(operation)) return;
  state_.operations.add(operation);
  if (offer) match(*offer, operation);
}

void LocalWire::send_offer(const Pointer& send, const NetPayload& payload) {
  if (!is_open_for(send)) return;
  state_.operations.add(send);
  send->number = ++last_offer_;
  lent_.emplace(last_offer_, Lent{send, payload.keeps, payload.memory == nullptr});
  FrameHeader header{.type = FrameType::offer,
                     .tag = send->tag,
                     .number = last_offer_,
                     .bytes = payload.bytes.size()};
  if (payload.memory == nullptr) return out_.send(header, payload.bytes);
  header.memory = memories_.number_of(payload.memory, out_);
  header.offset = static_cast<std::uint64_t>(payload.bytes.data() - payload.memory->data());
  out_.send(header);
}

void LocalWire::withdraw(NetOperation& operation) {
  if (operation.borrowed) {
    answer(FrameType::back, operation.number);
    operation.borrowed.reset();
  }
  if (operation.state != Status::State::pending || !operation.sending) return;
  const auto lent = lent_.find(operation.number);
  if (lent != lent_.end()) lent->second.send = nullptr;  // the memory stays until it is back
  if (!operation.taken) out_.send({.type = FrameType::withdraw, .number = operation.number});
}

/// Ends a receive by an offer with its tag.
void LocalWire::match(const Offer& offer, const Pointer& receive) {
  state_.frames.count_use();
  const FrameHeader& header = offer.header;
  if (header.bytes != receive->bytes) {
    answer(FrameType::refuse, header.number, receive->bytes);
    return state_.operations.fail(receive, size_mismatch(header.bytes, receive->bytes));
  }
  receive->number = header.number;
  if (header.memory == 0) {
    std::copy(offer.data.begin(), offer.data.end(), receive->landing);
    state_.operations.complete(receive, {receive->landing, receive->bytes});
  } else {
    receive->borrowed = offer.memory;
    state_.operations.complete(receive,
                               {receive->borrowed->data() + header.offset, receive->bytes});
  }
  answer(FrameType::taken, header.number);
}

void LocalWire::answer(FrameType type, std::uint64_t offer, std::uint64_t bytes) {
  in_.send({.type = type, .number = offer, .bytes = bytes});
}

// --- frames that come ----------------------------------------------------------------------------

void LocalWire::handle(EventLoop::Kind kind) {
  if (kind == EventLoop::Kind::process) return on_process_exit();
  PacketConnection& connection = kind == EventLoop::Kind::out ? out_ : in_;
  if (!connection) return;
  connection.flush();
  read(connection);
}

/// Takes the frames that the process had still sent.
void LocalWire::on_process_exit() {
  for (PacketConnection* connection : {&out_, &in_}) {
    while (*connection && !connection->has_ended() && connection->socket().is_readable()) {
      read(*connection);
    }
  }
  end("the peer has ended");
}

void LocalWire::read(PacketConnection& connection) {
  FrameHeader header;
  std::vector<std::byte> data;
  for (int i = 0; i < kPacketsAtOnce && connection; ++i) {
    Descriptor descriptor;
    const PacketResult result = connection.socket().receive(header, data, descriptor);
    if (result == PacketResult::later) return;
    if (result == PacketResult::starved) {
      return close({"this process has no descriptor left for the peer's memory; raise `ulimit -n`",
                    "the peer has no descriptors left"},
                   std::nullopt);
    }
    if (result == PacketResult::ended) {
      connection.set_ended();
      if (&connection == &out_) lent_.clear();  // nobody is left who could read it
      return end_over(connection, "the peer has ended");
    }
    state_.see(Clock::now());
    state_.frames.count();
    try {
      &connection == &out_ ? handle_out(header, data)
                           : handle_in(header, data, std::move(descriptor));
    } catch (const IoError& error) {
      end(error.what());
    }
  }
}

void LocalWire::handle_out(const FrameHeader& header, std::span<const std::byte> text) {
  const bool is_of_handshake =
      header.type == FrameType::challenge || header.type == FrameType::welcome;
  if (is_of_handshake || !initiator_.is_verified()) return handle_handshake(header, text);
  if (header.type == FrameType::bye) return end_over(out_, said_by_peer(text_of(text)));
  if (header.type == FrameType::taken) return handle_taken(header);
  if (header.type == FrameType::back) {
    if (const Pointer send = take_lent(header.number)) state_.operations.complete(send);
  }
  if (header.type == FrameType::refuse) {
    const Pointer send = take_lent(header.number);
    if (send) state_.operations.fail(send, size_mismatch(send->bytes, header.bytes));
  }
}

void LocalWire::handle_handshake(const FrameHeader& header, std::span<const std::byte> text) {
  const Initiator::Step step = initiator_.take(header, text);
  if (!step.failure.empty()) return end(step.failure);
  if (step.hello) out_.send(*step.hello);
  if (initiator_.is_verified()) out_.release();
}

void LocalWire::handle_in(const FrameHeader& header, std::vector<std::byte>& data,
                          Descriptor descriptor) {
  if (header.type == FrameType::bye) return end_over(in_, said_by_peer(text_of(data)));
  if (header.type == FrameType::memory) return handle_memory(header, std::move(descriptor));
  if (header.type == FrameType::forget) return handle_forget(header);
  if (header.type == FrameType::offer) return handle_offer(header, data);
  if (header.type == FrameType::withdraw && offers_.drop(header.number)) {
    answer(FrameType::back, header.number);
  }
}

void LocalWire::handle_memory(const FrameHeader& header, Descriptor descriptor) {
  if (state_.operations.has_ended(Direction::receive)) return;
  if (mappings_.contains(header.number)) return close(kTwice, std::nullopt);
  if (mappings_.size() >= kMostMemories) return close(kTooMuch, std::nullopt);
  mappings_[header.number] = std::make_shared<SharedMapping>(std::move(descriptor), header.bytes);
}

/// Else the mappings that stay would be as many as the peer likes.
void LocalWire::handle_forget(const FrameHeader& header) {
  const auto found = mappings_.find(header.number);
  if (found != mappings_.end() && found->second.use_count() > 1) {
    return close({"the peer took back memory in which it offers something",
                  "the peer still reads what was offered"},
                 std::nullopt);
  }
  mappings_.erase(header.number);
}

void LocalWire::handle_offer(const FrameHeader& header, std::vector<std::byte>& data) {
  if (state_.operations.has_ended(Direction::receive)) return;
  const auto known = mappings_.find(header.memory);
  const auto memory = known == mappings_.end() ? nullptr : known->second;
  const bool is_there = header.memory == 0 ? data.size() == header.bytes
                                           : memory && header.offset <= memory->size() &&
                                                 header.bytes <= memory->size() - header.offset;
  if (!is_there) return end("the peer offers memory that it has not given");
  Offer offer{header, std::move(data), memory};
  if (const Pointer receive = state_.operations.find(Direction::receive, header.tag)) {
    return match(offer, receive);
  }
  if (!offers_.keep(std::move(offer))) return close(kTwice, std::nullopt);
  if (offers_.is_too_much()) close(kTooMuch, std::nullopt);
}

void LocalWire::handle_taken(const FrameHeader& header) {
  const auto lent = lent_.find(header.number);
  if (lent == lent_.end()) return;
  state_.frames.count_use();
  const Pointer send = lent->second.send;
  if (send) {
    send->taken = true;
    state_.operations.count_sent(send->bytes);
    if (!send->lends) {
      state_.operations.complete(send);
      lent->second.send = nullptr;
    }
  }
  if (lent->second.is_inline) lent_.erase(lent);
}

/// The send of an offer that is over; null where none waits for that.
LocalWire::Pointer LocalWire::take_lent(std::uint64_t number) {
  const auto lent = lent_.find(number);
  if (lent == lent_.end()) return nullptr;
  state_.frames.count_use();
  const Pointer send = lent->second.send;
  lent_.erase(lent);
  return send;
}

}  // namespace

MakeWire local_wire(std::string name) {
  return [name = std::move(name)](PeerState& state) {
    return std::make_unique<LocalWire>(state, name);
  };
}

}  // namespace gossamer
