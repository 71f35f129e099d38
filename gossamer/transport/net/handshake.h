#pragma once
/// How the two ends of a connection prove that they know the job's token (job_secret.h), without
/// telling it.
///
/// Note [Handshake]: the responder, to which somebody has connected, sends `challenge` with a
/// nonce. The initiator, which has connected, answers `hello`: a nonce of its own, its identity,
/// the worker that it means, and a proof of all that. The answer is `welcome`, a proof by the
/// responder. Proofs are HMAC-SHA256 under the token, of fields that each begin with their length.
/// So neither end learns the token, no frame that was overheard can be sent again, and no proof is
/// good for another worker, role or endpoint. All that follows over a stream is authenticated by
/// keys that both derive from the same (frame_seal.h): all headers, and payloads where either end
/// wants it. The same over sockets of one host, where the system says in addition whose process is
/// at the other end.

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "gossamer/transport/net/frame.h"
#include "gossamer/transport/net/frame_seal.h"

namespace gossamer {

using Nonce = std::array<std::byte, 32>;

/// A worker, as it names itself where it connects.
struct Identity {
  std::uint64_t rank = 0;
  std::uint64_t member = 0;  ///< its id for the whole job, whatever its rank is at a time
  std::uint64_t generation = 0;
  std::string endpoint = {};  ///< where it can be reached; see endpoint.h
  bool operator==(const Identity&) const = default;
};

/// What both ends know once `hello` has been sent.
struct Handshake {
  Identity initiator;
  std::uint64_t responder = 0;  ///< its rank
  Nonce responder_nonce = {};   ///< of its challenge
  Nonce initiator_nonce = {};
  bool responder_authenticates = false;  ///< it wants payloads to be authenticated
  bool initiator_authenticates = false;
  bool authenticates() const { return responder_authenticates || initiator_authenticates; }
  bool operator==(const Handshake&) const = default;
};

struct HandshakeFrame {
  FrameHeader header;
  std::vector<std::byte> text;
};

/// Bytes that nobody can guess. Throws IoError when the system gives none.
Nonce random_nonce();

HandshakeFrame make_challenge(const Nonce& nonce, bool authenticates = false);
/// The nonce of a challenge. Nothing where it makes no sense.
std::optional<Nonce> read_challenge(const FrameHeader& header, std::span<const std::byte> text);

HandshakeFrame make_hello(const std::string& token, const Handshake& handshake);
/// What a hello says after `before`, of which it fills in the rest: nothing where it proves
/// nothing.
std::optional<Handshake> read_hello(const std::string& token, const Handshake& before,
                                    const FrameHeader& header, std::span<const std::byte> text);

/// By the responder, of this generation.
HandshakeFrame make_welcome(const std::string& token, const Handshake& handshake,
                            std::uint64_t generation);
/// The responder's generation; nothing where the text proves nothing.
std::optional<std::uint64_t> read_welcome(const std::string& token, const Handshake& handshake,
                                          const FrameHeader& header,
                                          std::span<const std::byte> text);

/// Of the frames that each end sends after the handshake.
struct SessionKeys {
  FrameKey initiator = {};
  FrameKey responder = {};
};
SessionKeys session_keys(const std::string& token, const Handshake& handshake);

/// A key for one purpose of the whole job.
std::array<std::byte, 32> key_for(const std::string& token, std::string_view purpose);

struct InitiatorOptions {
  Identity own;                  ///< with the endpoint
  std::uint64_t responder = 0;   ///< its rank
  std::uint64_t generation = 0;  ///< of the responder
  std::string token = {};
  bool authenticates = false;  ///< payloads are to be authenticated
  std::string impostor = {};   ///< the failure where the other end proves nothing
};

/// The initiator's part in a handshake, whatever its connection is.
class Initiator {
 public:
  struct Step {
    std::optional<HandshakeFrame> hello = {};  ///< to be sent
    std::string failure = {};                  ///< why nothing is exchanged with the other end
  };

  explicit Initiator(InitiatorOptions options) : options_(std::move(options)) {}

  /// Takes a challenge or a welcome; one that comes twice changes nothing.
  Step take(const FrameHeader& header, std::span<const std::byte> text);
  bool has_sent_hello() const { return has_sent_hello_; }
  /// The other end has proved that it is the responder.
  bool is_verified() const { return is_verified_; }
  /// Payloads are authenticated because either end wants it.
  bool authenticates() const { return handshake_.authenticates(); }
  /// Once hello has been sent.
  SessionKeys keys() const { return session_keys(options_.token, handshake_); }
  /// Begins again, over another connection.
  void restart() { has_sent_hello_ = is_verified_ = false; }

 private:
  Step take_challenge(const FrameHeader& header, std::span<const std::byte> text);

  const InitiatorOptions options_;
  Handshake handshake_;
  bool has_sent_hello_ = false;
  bool is_verified_ = false;
};

}  // namespace gossamer
