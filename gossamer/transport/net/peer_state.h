#pragma once
/// PeerState: what a Peer and its Wire both know of one other worker.

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <string>
#include <utility>

#include "gossamer/transport/net/frame_budget.h"
#include "gossamer/transport/net/handshake.h"
#include "gossamer/transport/net/pending_operations.h"

namespace gossamer {

/// Between whom a Peer is.
struct PeerOptions {
  Identity own;  ///< with the endpoint
  int peer = 0;
  std::uint64_t generation = 0;  ///< of the peer
  std::string token;
  bool authenticates = false;  ///< payloads over streams, see NetOptions
};

/// For the handshake with the peer.
inline InitiatorOptions initiator_options(const PeerOptions& options, std::string impostor) {
  return {.own = options.own,
          .responder = static_cast<std::uint64_t>(options.peer),
          .generation = options.generation,
          .token = options.token,
          .authenticates = options.authenticates,
          .impostor = std::move(impostor)};
}

struct PeerState {
  PeerState(PeerOptions between, EndedOperations& ended)
      : options(std::move(between)), operations(options.peer, ended) {}

  /// The peer was there at this moment.
  void see(Deadline moment) { last_seen = std::max(last_seen, moment); }
  /// Its connection ends now, or nobody listens there any more: perhaps because it has gone on
  /// without this worker, see Note [Silence].
  Fault fault_of_end() const {
    const Deadline since = std::max(suspected_at, Clock::after_standstill());
    return Clock::now() < since + kOfSuspicion ? Fault::silent : Fault::lost;
  }

  const PeerOptions options;
  PendingOperations operations;
  FrameBudget frames;
  Deadline last_seen = {};
  Deadline suspected_at = {};  ///< at the last such beat

 private:
  // So much of what it had said before may still come before the reset.
  static constexpr std::chrono::seconds kOfSuspicion{3};
};

}  // namespace gossamer
