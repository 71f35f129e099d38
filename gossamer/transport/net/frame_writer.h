#pragma once
/// For fuzz targets: frames of a stream as somebody with the key writes them, right or wrong.

#include <cstdint>
#include <span>
#include <vector>

#include "gossamer/base/fuzz.h"
#include "gossamer/transport/net/frame.h"
#include "gossamer/transport/net/frame_seal.h"

namespace gossamer {

class FrameWriter {
 public:
  FrameWriter(const FrameKey& key, bool authenticates_payloads)
      : seal_(key, authenticates_payloads) {}

  /// The header with its codes, and the body, whose code is wrong on request.
  std::vector<std::byte> frame(const FrameHeader& header, std::span<const std::byte> body,
                               bool is_wrong = false) {
    seal_.begin(header.type == FrameType::data ? FrameSeal::Part::payload : FrameSeal::Part::text);
    seal_.add(body);
    FrameCode of_body = seal_.end();
    if (is_wrong) of_body[3] ^= std::byte{16};
    const auto head = std::as_bytes(std::span(&header, 1));
    seal_.begin(FrameSeal::Part::head);
    seal_.add(head);
    seal_.add(of_body);
    const FrameCode of_head = seal_.end();
    if (!is_handshake(header.type)) seal_.next();
    std::vector<std::byte> all;
    for (const std::span<const std::byte> part :
         {head, std::span<const std::byte>(of_body), std::span<const std::byte>(of_head), body}) {
      all.insert(all.end(), part.begin(), part.end());
    }
    return all;
  }

 private:
  FrameSeal seal_;
};

/// A header in few bytes, so that small numbers, which mean something, are found soon.
inline FrameHeader take_header(FuzzBytes& input) {
  FrameHeader header{.type = static_cast<FrameType>(input.take<std::uint8_t>() % 18),
                     .tag = {.step = input.take<std::uint8_t>() % 4}};
  const auto wide = input.take<std::uint8_t>();
  const auto number = [&](unsigned bit) {
    const bool is_wide = (wide >> bit & 1U) != 0;
    return is_wide ? input.take<std::uint64_t>() : std::uint64_t{input.take<std::uint8_t>()};
  };
  header.number = number(0);
  header.bytes = number(1);
  header.offset = number(2);
  header.memory = static_cast<std::uint32_t>(number(3));
  header.follows = static_cast<std::uint32_t>(number(4));
  if ((wide & 32U) != 0) header.magic = 0;
  return header;
}

}  // namespace gossamer
