// Handshakes with somebody who does not know the token, and with somebody who does.

#include "gossamer/base/fuzz.h"
#include "gossamer/transport/net/handshake.h"

namespace gossamer {
namespace handshake_fuzz {

const std::string kToken = "open sesame";
const std::string kOther = "open sesamf";

Handshake take_handshake(FuzzBytes& input) {
  const auto mode = input.take<std::uint8_t>();
  Handshake handshake{.initiator = {.rank = input.take<std::uint64_t>(),
                                    .member = input.take<std::uint64_t>(),
                                    .generation = input.take<std::uint64_t>()},
                      .responder = input.take<std::uint64_t>(),
                      .responder_nonce = input.take<Nonce>(),
                      .initiator_nonce = input.take<Nonce>(),
                      .responder_authenticates = (mode & 1U) != 0,
                      .initiator_authenticates = (mode & 2U) != 0};
  handshake.initiator.endpoint = std::string(input.take_text(input.take<std::uint8_t>()));
  return handshake;
}

/// What the responder knows before `hello` comes.
Handshake before(const Handshake& handshake) {
  return {.initiator = {},
          .responder = handshake.responder,
          .responder_nonce = handshake.responder_nonce,
          .initiator_nonce = {},
          .responder_authenticates = handshake.responder_authenticates,
          .initiator_authenticates = false};
}

/// Both ends agree, and a change of one byte, of the header or of the text, is noticed.
bool shake_hands(FuzzBytes input) {
  const Handshake handshake = take_handshake(input);
  HandshakeFrame sent = make_hello(kToken, handshake);
  const auto received = read_hello(kToken, before(handshake), sent.header, sent.text);
  fuzz_check(received == handshake, "another handshake was received than was sent");
  const auto other = read_hello(kOther, before(handshake), sent.header, sent.text);
  fuzz_check(!other, "another token will do");
  const SessionKeys ours = session_keys(kToken, handshake);
  const SessionKeys theirs = session_keys(kToken, *received);
  const bool are_alike = ours.initiator == theirs.initiator && ours.responder == theirs.responder;
  fuzz_check(are_alike, "other keys");
  const auto generation = input.take<std::uint64_t>();
  const HandshakeFrame answer = make_welcome(kToken, handshake, generation);
  const auto answered = read_welcome(kToken, *received, answer.header, answer.text);
  fuzz_check(answered == generation, "another generation was received than was sent");
  const auto change = input.take<std::uint8_t>();
  const std::size_t at = input.take<std::uint32_t>() % (sent.text.size() + sizeof(FrameHeader));
  const std::size_t in_text = at - std::min(at, sizeof(FrameHeader));
  if (change == 0) return true;
  if (at < sizeof(FrameHeader)) {
    auto* const header = reinterpret_cast<std::uint8_t*>(&sent.header);
    header[at] = static_cast<std::uint8_t>(header[at] ^ change);
  } else {
    sent.text[in_text] ^= std::byte{change};
  }
  const auto wrong = read_hello(kToken, before(handshake), sent.header, sent.text);
  // Fields of the header that a hello does not use say nothing.
  fuzz_check(!wrong || (at < sizeof(FrameHeader) && wrong == handshake), "a change will do");
  return true;
}

}  // namespace handshake_fuzz

bool fuzz_handshake(std::span<const std::byte> bytes) {
  using namespace handshake_fuzz;
  FuzzBytes input(bytes);
  if (input.take<std::uint8_t>() % 2 != 0) return shake_hands(input);
  const Handshake handshake = take_handshake(input);
  const FrameHeader header = input.take<FrameHeader>();
  const std::span<const std::byte> text = input.take_bytes(bytes.size());
  fuzz_check(!read_hello(kToken, handshake, header, text), "a hello without the token");
  fuzz_check(!read_welcome(kToken, handshake, header, text), "a welcome without the token");
  const auto nonce = read_challenge(header, text);
  if (!nonce) return false;
  const HandshakeFrame again = make_challenge(*nonce, header.number != 0);
  fuzz_check(read_challenge(again.header, again.text) == nonce, "another nonce than was sent");
  return true;
}

}  // namespace gossamer
