#pragma once
/// The frames that workers send to each other over the transport net.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "gossamer/transport/transport.h"

namespace gossamer {

/// Payloads of up to this many bytes travel inside of their offer.
inline constexpr std::size_t kInlineBytes = std::size_t{16} << 10;

/// What a peer may have sent without an answer, and what may wait for it: far more than all plans
/// of a job post at once, far less than would harm a host. An edge that goes beyond it ends.
inline constexpr std::size_t kMostOpen = 65'536;
inline constexpr std::size_t kMostOpenBytes = std::size_t{32} << 20;
/// Useless frames that a peer may send per beat of the transport, see Note [Useless frames]; a plan
/// causes none but those that take back what its deadlines end.
inline constexpr std::int64_t kUselessPerBeat = 8192;
/// Memories that a peer may have given: of the mappings that the system lets a process have, few.
inline constexpr std::size_t kMostMemories = 4096;

/// Note [Offers]: a send offers its payload: where it lies in shared memory, or, if it is small,
/// the bytes themselves. The receiver answers `taken` once the receive with its tag is there, which
/// is done by that, and `back` when it has read what lies in shared memory. An offer that is
/// withdrawn before it was taken comes back, too. The worker that connected sends the offers; the
/// answers to them come back over the same connection.
///
/// Note [Receivers are ready]: over a stream no payload is sent before its receive is there. The
/// receiver sends `ready` over a connection of its own to the sender, and the payload comes back
/// over the same connection, straight into its landing buffer. So no unexpected payload is ever
/// stored.
enum class FrameType : std::uint32_t {
  hello,     ///< first by the worker that connects, see Note [Handshake]; `number` is the rank,
             ///< `bytes` its generation, `offset` the version, `memory` 1 where payloads are to be
             ///< authenticated
  memory,    ///< a descriptor comes with it: memory `number` of `bytes` bytes
  forget,    ///< memory `number` will not be used any more
  offer,     ///< offer `number` of `bytes` bytes, at `offset` of `memory`; 0: they follow
  withdraw,  ///< offer `number` shall not be taken any more
  taken,
  back,
  refuse,  ///< offer `number` has another size than the `bytes` that are expected
  alive,
  bye,        ///< the reason follows
  challenge,  ///< to the worker that connects; `offset` is the version, `number` 1 where payloads
              ///< are to be authenticated; a nonce follows
  welcome,    ///< a proof follows that this end, of generation `bytes`, knows the token as well
  ready,      ///< a receive of `bytes` bytes with this tag, to be called `number`, waits
  unready,    ///< it does not wait any more
  data,       ///< bytes of `number` from `offset` on follow
  stopped,    ///< the rest of `number` does not come; another send with its tag may
};

/// Of the frames, their headers and the proofs. Workers of different versions do not exchange
/// anything, and say so. The first frames of both ends, which tell the version, stay as they are.
inline constexpr std::uint32_t kWireVersion = 2;

/// The fixed beginning of every frame. Over TCP two codes follow it: SealedHeader in stream.h.
struct FrameHeader {
  std::uint32_t magic = 0x676f7373;
  FrameType type = FrameType::alive;
  Tag tag = {};
  std::uint64_t epoch = 0;  ///< of the members that the sender counts with; there is one for now
  std::uint64_t number = 0;
  std::uint64_t bytes = 0;
  std::uint64_t offset = 0;
  std::uint32_t memory = 0;
  std::uint32_t follows = 0;  ///< bytes after this header, over streams
};
static_assert(sizeof(FrameHeader) == 64);

/// Whether a frame of this type belongs to Note [Handshake].
constexpr bool is_handshake(FrameType type) {
  return type == FrameType::challenge || type == FrameType::hello || type == FrameType::welcome;
}

/// Text that follows a header, and back.
inline std::span<const std::byte> bytes_of(const std::string& text) {
  return std::as_bytes(std::span(text));
}
inline std::string text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace gossamer
