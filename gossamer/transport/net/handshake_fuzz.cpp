// Greetings by somebody who does not know the token, and by somebody who does.

#include "gossamer/base/fuzz.h"
#include "gossamer/transport/net/handshake.h"

namespace gossamer {
namespace handshake_fuzz {

const std::string kToken = "open sesame";
const std::string kOther = "open sesamf";

bool are_same(const Meeting& a, const Meeting& b) {
  return a.caller.rank == b.caller.rank && a.caller.member == b.caller.member &&
         a.caller.generation == b.caller.generation && a.caller.card == b.caller.card &&
         a.called == b.called && a.asked == b.asked && a.told == b.told && a.asks == b.asks &&
         a.tells == b.tells;
}

Meeting take_meeting(FuzzBytes& input) {
  const auto mode = input.take<std::uint8_t>();
  Meeting meeting{.caller = {.rank = input.take<std::uint64_t>(),
                             .member = input.take<std::uint64_t>(),
                             .generation = input.take<std::uint64_t>()},
                  .called = input.take<std::uint64_t>(),
                  .asked = input.take<Nonce>(),
                  .told = input.take<Nonce>(),
                  .asks = (mode & 1U) != 0,
                  .tells = (mode & 2U) != 0};
  meeting.caller.card = std::string(input.take_text(input.take<std::uint8_t>()));
  return meeting;
}

/// What the called one knows before it hears `hello`.
Meeting before(const Meeting& meeting) {
  return {.caller = {},
          .called = meeting.called,
          .asked = meeting.asked,
          .told = {},
          .asks = meeting.asks,
          .tells = false};
}

/// Both ends agree, and a change of one byte, of the words or of what follows them, is noticed.
bool meet(FuzzBytes input) {
  const Meeting meeting = take_meeting(input);
  Greeting said = hello(kToken, meeting);
  const auto heard = meeting_of(kToken, before(meeting), said.words, said.text);
  fuzz_check(heard && are_same(*heard, meeting), "another meeting was heard than was said");
  fuzz_check(!meeting_of(kOther, before(meeting), said.words, said.text), "another token will do");
  const SessionKeys ours = session_keys(kToken, meeting);
  const SessionKeys theirs = session_keys(kToken, *heard);
  fuzz_check(ours.caller == theirs.caller && ours.called == theirs.called, "other keys");
  const auto generation = input.take<std::uint64_t>();
  const Greeting answer = welcome(kToken, meeting, generation);
  const auto answered = generation_of(kToken, *heard, answer.words, answer.text);
  fuzz_check(answered == generation, "another generation was heard than was said");
  const auto change = input.take<std::uint8_t>();
  const std::size_t at = input.take<std::uint32_t>() % (said.text.size() + sizeof(Words));
  const std::size_t in_text = at - std::min(at, sizeof(Words));
  if (change == 0) return true;
  if (at < sizeof(Words)) {
    auto* const words = reinterpret_cast<std::uint8_t*>(&said.words);
    words[at] = static_cast<std::uint8_t>(words[at] ^ change);
  } else {
    said.text[in_text] ^= std::byte{change};
  }
  const auto wrong = meeting_of(kToken, before(meeting), said.words, said.text);
  // Words that a hello does not use say nothing.
  fuzz_check(!wrong || (at < sizeof(Words) && are_same(*wrong, meeting)), "a change will do");
  return true;
}

}  // namespace handshake_fuzz

bool fuzz_handshake(std::span<const std::byte> bytes) {
  using namespace handshake_fuzz;
  FuzzBytes input(bytes);
  if (input.take<std::uint8_t>() % 2 != 0) return meet(input);
  const Meeting meeting = take_meeting(input);
  const Words words = input.take<Words>();
  const std::span<const std::byte> text = input.take_bytes(bytes.size());
  fuzz_check(!meeting_of(kToken, meeting, words, text), "a hello without the token");
  fuzz_check(!generation_of(kToken, meeting, words, text), "a welcome without the token");
  const auto nonce = nonce_of(words, text);
  if (!nonce) return false;
  const Greeting again = challenge(*nonce, words.number != 0);
  fuzz_check(nonce_of(again.words, again.text) == nonce, "another nonce than was said");
  return true;
}

}  // namespace gossamer
