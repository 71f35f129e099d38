#pragma once
/// Frames: what two workers tell each other over a process group, and how it looks in memory.

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "gossamer/transport/transport.h"

namespace gossamer {

/// Note [Receivers ask]: a receive is announced to the sender, and nothing travels before the
/// sender has a send of the same tag and size. So neither side keeps payloads that nobody wants,
/// sizes are compared before the first byte, and a receive that is given up is simply called back.
enum class FrameKind : std::uint32_t {
  ready = 1,  ///< receive `id` wants `total` bytes
  cancel,     ///< receive `id` is over
  refuse,     ///< the send that receive `id` asks for has `total` bytes
  data,       ///< `length` bytes from `offset` of the `total` bytes for receive `id`
  close,      ///< the last frame of this side; `id` is 1 when the worker leaves, else 0
};

/// The first bytes of a frame, in the byte order of the machine; `length` bytes follow.
struct C10dFrameHeader {
  static constexpr std::uint32_t kMagic = 0x31534d47;  // GMS1
  std::uint32_t magic = kMagic;
  FrameKind kind = FrameKind::close;
  std::uint64_t id = 0;
  Tag tag;
  std::uint64_t total = 0;
  std::uint64_t offset = 0;
  std::uint64_t length = 0;
};

/// Bytes of the largest frame: payloads are cut, so that a request that ends early never waits for
/// a link, and memory that is not ours is never lent to the process group.
inline constexpr std::size_t kFrameBytes = std::size_t{1} << 20;
inline constexpr std::size_t kFrameDataBytes = kFrameBytes - sizeof(C10dFrameHeader);

/// Writes a header to the start of a frame; returns where its data go.
inline std::byte* put_header(std::span<std::byte> frame, const C10dFrameHeader& header) {
  std::memcpy(frame.data(), &header, sizeof(header));
  return frame.data() + sizeof(header);
}

inline C10dFrameHeader get_header(std::span<const std::byte> frame) {
  C10dFrameHeader header;
  std::memcpy(&header, frame.data(), sizeof(header));
  return header;
}

}  // namespace gossamer
