// What a stream makes of whatever arrives, by somebody who has no key and by somebody who has it.

#include <sys/socket.h>

#include <array>
#include <vector>

#include "gossamer/transport/net/frame_writer.h"
#include "gossamer/transport/net/stream.h"

namespace gossamer {
namespace stream_fuzz {

using Bytes = std::vector<std::byte>;

constexpr FrameKey kKey = {std::byte{7}};

struct Heard {
  Words words;
  Bytes body;  ///< of data: none where it was dropped

  bool operator==(const Heard& other) const {
    return std::memcmp(&words, &other.words, sizeof(Words)) == 0 && body == other.body;
  }
};

struct Outcome {
  std::vector<Heard> heard;
  bool has_ended = false;
  bool is_spoiled = false;

  bool operator==(const Outcome&) const = default;
};

struct Setting {
  bool has_key = false;
  bool authenticates = false;  ///< payloads
};

bool lands(const Words& words) { return words.number % 2 == 0; }

Outcome hear(std::span<const std::byte> bytes, const Setting& setting, std::size_t portion) {
  std::array<int, 2> ends = {};
  fuzz_check(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends.data()) == 0, "no sockets");
  Stream stream{Descriptor(ends[0])};
  const Descriptor other(ends[1]);
  if (setting.has_key) stream.authenticate(kKey, kKey, setting.authenticates);
  Outcome outcome;
  std::unique_ptr<std::byte[]> landing;  // of exactly the size that was promised
  const StreamListener listener{
      .heard =
          [&](const Words& words, std::span<const std::byte> text) {
            outcome.heard.push_back({words, Bytes(text.begin(), text.end())});
          },
      .landing =
          [&](const Words& words) {
            landing = std::make_unique<std::byte[]>(words.follows);
            return std::span(landing.get(), lands(words) ? words.follows : 0);
          },
      .landed =
          [&](const Words& words) {
            const std::span<const std::byte> body(landing.get(), words.follows);
            outcome.heard.push_back(
                {words, lands(words) ? Bytes(body.begin(), body.end()) : Bytes()});
          }};
  for (; !bytes.empty() && !stream.has_ended(); stream.read(listener)) {
    const std::size_t count = std::min(portion, bytes.size());
    const ssize_t sent = ::send(other.get(), bytes.data(), count, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent > 0) bytes = bytes.subspan(static_cast<std::size_t>(sent));
  }
  outcome.has_ended = stream.has_ended();
  outcome.is_spoiled = stream.is_spoiled();
  return outcome;
}

/// Frames as somebody with the key sends them. Before the words of each stands a byte: the code of
/// an odd one is wrong. `expected` is what is heard of them.
Bytes frames(FuzzBytes input, const Setting& setting, Outcome& expected) {
  FrameWriter writer(kKey, setting.authenticates);
  Bytes all;
  while (!input.empty()) {
    const bool is_wrong = input.take<std::uint8_t>() % 2 != 0;
    const Words words = input.take<Words>();
    const bool is_data = words.say == Say::data;
    const std::span<const std::byte> body = input.take_bytes(words.follows);
    const Bytes frame = writer.frame(words, body, is_wrong);
    all.insert(all.end(), frame.begin(), frame.end());
    if (expected.is_spoiled) continue;
    const std::size_t most = is_data ? 512 << 10 : 1024;
    expected.is_spoiled = words.magic != Words{}.magic || words.follows > most;
    if (!expected.is_spoiled && body.size() < words.follows) break;
    expected.is_spoiled = expected.is_spoiled || (is_wrong && !is_greeting(words.say));
    expected.has_ended = expected.is_spoiled;
    if (expected.is_spoiled) continue;
    const bool is_kept = !is_data || lands(words);
    expected.heard.push_back({words, is_kept ? Bytes(body.begin(), body.end()) : Bytes()});
  }
  return all;
}

}  // namespace stream_fuzz

bool fuzz_stream(std::span<const std::byte> bytes) {
  using namespace stream_fuzz;
  FuzzBytes input(bytes);
  const unsigned mode = input.take<std::uint8_t>();
  const Setting setting{.has_key = (mode & 1U) != 0, .authenticates = (mode & 2U) != 0};
  constexpr std::array<std::size_t, 4> kPortions = {31, 96, 97, 1000};
  const std::size_t portion = kPortions[(mode >> 2U) % kPortions.size()];
  if (!setting.has_key) {
    const std::span<const std::byte> all = input.take_bytes(bytes.size());
    const Outcome outcome = hear(all, setting, all.size());
    fuzz_check(hear(all, setting, portion) == outcome, "portions make a difference");
    for (const Heard& heard : outcome.heard) {
      fuzz_check(is_greeting(heard.words.say), "without a key, more than a greeting was heard");
    }
    return !outcome.heard.empty();
  }
  Outcome expected;
  const Bytes all = frames(input, setting, expected);
  fuzz_check(hear(all, setting, all.size()) == expected, "something else was heard than was said");
  fuzz_check(hear(all, setting, portion) == expected, "portions make a difference");
  return !expected.heard.empty();
}

}  // namespace gossamer
