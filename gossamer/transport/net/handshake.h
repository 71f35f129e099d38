#pragma once
/// How the two ends of a connection prove that they know the job's token, without telling it.
///
/// Note [Meeting]: whoever is called says `challenge` with a nonce. The caller answers `hello`: a
/// nonce of its own, who it is, whom it calls, and a proof of all that. The answer is `welcome`, a
/// proof by the worker that was called. Proofs are HMAC-SHA256 under the token, of fields that each
/// begin with their length. So neither end learns the token, nothing that was overheard can be said
/// again, and no proof is good for another worker, role or card. What follows over a stream is
/// authenticated by keys that both derive from the same (frame_seal.h): all words, and payloads
/// where either end wants it. The same over sockets of one host, where the system says in addition
/// whose process is at the other end.

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "gossamer/transport/net/frame_seal.h"
#include "gossamer/transport/net/words.h"

namespace gossamer {

using Nonce = std::array<std::byte, 32>;

/// Who a worker is, as it says where it connects.
struct Introduction {
  std::uint64_t rank = 0;
  std::uint64_t member = 0;  ///< its id for the whole job, whatever its rank is at a time
  std::uint64_t generation = 0;
  std::string card = {};  ///< where it can be reached; see card.h
};

/// What both ends know once `hello` has been said.
struct Meeting {
  Introduction caller;
  std::uint64_t called = 0;  ///< rank of the worker that is called
  Nonce asked = {};          ///< by that one, with its challenge
  Nonce told = {};           ///< by the caller
  bool asks = false;         ///< the one that is called wants payloads to be authenticated
  bool tells = false;        ///< the caller does
  bool authenticates() const { return asks || tells; }
};

/// Words and the text that follows them.
struct Greeting {
  Words words;
  std::vector<std::byte> text;
};

/// Bytes that nobody can guess. Throws IoError when the system gives none.
Nonce random_nonce();

Greeting challenge(const Nonce& nonce, bool asks = false);
/// The nonce of a challenge. Nothing where it makes no sense; see also version_of().
std::optional<Nonce> nonce_of(const Words& words, std::span<const std::byte> text);
/// The version of whoever says challenge or hello; see kWireVersion.
std::uint64_t version_of(const Words& words);
/// Why a worker of another version is not met.
std::string other_version(const Words& words);

Greeting hello(const std::string& token, const Meeting& meeting);
/// What a hello says after `before`, of which it fills in the rest: nothing where it proves
/// nothing.
std::optional<Meeting> meeting_of(const std::string& token, const Meeting& before,
                                  const Words& words, std::span<const std::byte> text);

/// By the worker that was called, of this generation.
Greeting welcome(const std::string& token, const Meeting& meeting, std::uint64_t generation);
/// The generation of the worker that was called; nothing where the text proves nothing.
std::optional<std::uint64_t> generation_of(const std::string& token, const Meeting& meeting,
                                           const Words& words, std::span<const std::byte> text);

/// Of the frames that each end says after its greeting.
struct SessionKeys {
  FrameKey caller = {};
  FrameKey called = {};
};
SessionKeys session_keys(const std::string& token, const Meeting& meeting);

/// A key for one purpose of the whole job.
std::array<std::byte, 32> key_for(const std::string& token, std::string_view purpose);

}  // namespace gossamer
