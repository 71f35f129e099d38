#include "gossamer/transport/net/peer.h"

#include <algorithm>
#include <chrono>
#include <string>
#include <utility>

#include "gossamer/base/errors.h"
#include "gossamer/transport/cut_off.h"

namespace gossamer {

const Ending kTooMuch{.here = "the peer says more than it waits for answers to",
                      .there = "the peer does not take so much without an answer"};
const Ending kTwice{.here = "the peer gave a number that it still uses to something else",
                    .there = "the peer was given a number twice"};

Peer::Peer(PeerOptions options, EventLoop& loop, EndedOperations& ended, const MakeWire& make_wire)
    : loop_(loop), state_(std::move(options), ended), wire_(make_wire(state_)) {}

/// Has the loop watch the connections as they are now.
void Peer::settle() {
  if (!is_retired_) wire_->maintain({.loop = loop_, .watches = !state_.frames.is_spent()});
}

void Peer::connect() { wire_->maintain({.loop = loop_, .connects = true}); }

/// Does what a peer has caused; a worker for which the system has nothing left gives the peer up.
template <class Work>
void Peer::work(const Work& work) {
  try {
    work();
  } catch (const IoError& error) {
    wire_->close({error.what(), "the peer can hear no more"}, std::nullopt);
  }
  settle();
}

void Peer::accept(AcceptedConnection&& accepted) {
  work([&] { wire_->accept(std::move(accepted)); });
}

/// The end of a process may be that of a former generation.
void Peer::handle(EventLoop::Kind kind) {
  const auto number = static_cast<std::uint32_t>(state_.options.peer);
  if (kind == EventLoop::Kind::process && !loop_.has_process_ended(number)) return;
  work([&] { wire_->handle(kind); });
}

void Peer::post(const Pointer& operation, const NetPayload& payload) {
  wire_->post(operation, payload);
  settle();
}

void Peer::release(const Pointer& operation) {
  wire_->withdraw(*operation);
  if (operation->state == Status::State::pending) {
    state_.operations.drop(operation, {"released before it ended", Fault::other});
  }
  settle();
}

void Peer::expire(const Pointer& operation, Deadline now, const SilenceWatch& silences) {
  const bool is_lent = operation->taken && operation->lends;
  if (operation->state != Status::State::pending || is_lent || now < operation->deadline) return;
  const bool is_moving = operation->taken || operation->landed > 0;
  const std::string peer = "worker " + std::to_string(state_.options.peer);
  const std::string reason = is_moving            ? "the payload is still on the link"
                             : operation->sending ? peer + " posted no receive"
                                                  : peer + " posted no send";
  const auto unheard = silences.unheard(state_.options.peer, now);
  wire_->withdraw(*operation);
  state_.operations.fail(
      operation, {"deadline passed; " + reason + words_on(unheard), Fault::late, rank_of(unheard)});
  settle();
}

LastHeard Peer::last_heard() const {
  if (!silence_.empty() || state_.operations.has_ended_by(Fault::silent)) {
    return {.state = LastHeard::State::given_up, .at = state_.last_seen};
  }
  return {.state = is_there() ? LastHeard::State::there : LastHeard::State::gone,
          .at = state_.last_seen};
}

void Peer::beat(const Beat& beat) {
  const Deadline now = Clock::now();
  if (beat.forgives_silence) state_.see(now);
  state_.frames.refill();
  wire_->maintain(
      {.loop = loop_, .watches = !state_.frames.is_spent(), .idle_since = beat.idle_since});
  if (beat.silence != Silence::none) state_.suspected_at = now;
  if (beat.silence != Silence::given_up) return;
  const auto silence = std::chrono::duration_cast<std::chrono::seconds>(now - state_.last_seen);
  for (const Pointer& operation : state_.operations.all()) {
    silence_ = "the peer has been silent for " + std::to_string(silence.count()) + " s";
    wire_->withdraw(*operation);
    state_.operations.fail(operation, {silence_, Fault::silent});
  }
  settle();
}

void Peer::close(const Ending& ending, std::optional<Deadline> linger) {
  wire_->close(ending, linger);
  settle();
}

void Peer::replace(Peer& former, const Ending& ending) {
  former.wire_->close(ending, std::nullopt);
  former.wire_->maintain({.loop = loop_, .watches = false});
  former.is_retired_ = true;
  loop_.forget_process(static_cast<std::uint32_t>(state_.options.peer));
  state_.operations.continue_from(former.state_.operations);
  state_.frames.continue_from(former.state_.frames);
}

Ending ending_of_one_that_leaves(const std::vector<std::shared_ptr<Peer>>& peers) {
  const bool is_expelled =
      std::ranges::any_of(peers, [](const auto& peer) { return peer && peer->has_expelled(); });
  return {"this worker's transport was destroyed", is_expelled ? kLeftOut : "the peer left"};
}

}  // namespace gossamer
