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

struct Received {
  FrameHeader header;
  Bytes body;  ///< of data: none where it was dropped

  bool operator==(const Received& other) const {
    return std::memcmp(&header, &other.header, sizeof(FrameHeader)) == 0 && body == other.body;
  }
};

struct Outcome {
  std::vector<Received> received;
  bool has_ended = false;
  bool is_corrupt = false;

  bool operator==(const Outcome&) const = default;
};

struct Setting {
  bool has_key = false;
  bool authenticates = false;  ///< payloads
};

bool lands(const FrameHeader& header) { return header.number % 2 == 0; }

Outcome receive(std::span<const std::byte> bytes, const Setting& setting, std::size_t portion) {
  std::array<int, 2> ends = {};
  fuzz_check(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends.data()) == 0, "no sockets");
  Stream stream{Descriptor(ends[0])};
  const Descriptor other(ends[1]);
  if (setting.has_key) stream.authenticate(kKey, kKey, setting.authenticates);
  Outcome outcome;
  std::unique_ptr<std::byte[]> landing;  // of exactly the size that was promised
  const StreamHandlers handlers{
      .frame =
          [&](const FrameHeader& header, std::span<const std::byte> text) {
            outcome.received.push_back({header, Bytes(text.begin(), text.end())});
          },
      .landing =
          [&](const FrameHeader& header) {
            landing = std::make_unique<std::byte[]>(header.follows);
            return std::span(landing.get(), lands(header) ? header.follows : 0);
          },
      .landed =
          [&](const FrameHeader& header) {
            const std::span<const std::byte> body(landing.get(), header.follows);
            outcome.received.push_back(
                {header, lands(header) ? Bytes(body.begin(), body.end()) : Bytes()});
          }};
  for (; !bytes.empty() && !stream.has_ended(); stream.read(handlers)) {
    const std::size_t count = std::min(portion, bytes.size());
    const ssize_t sent = ::send(other.get(), bytes.data(), count, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent > 0) bytes = bytes.subspan(static_cast<std::size_t>(sent));
  }
  outcome.has_ended = stream.has_ended();
  outcome.is_corrupt = stream.is_corrupt();
  return outcome;
}

/// Frames as somebody with the key sends them. Before the header of each stands a byte: the code of
/// an odd one is wrong. `expected` is what is received of them.
Bytes frames(FuzzBytes input, const Setting& setting, Outcome& expected) {
  FrameWriter writer(kKey, setting.authenticates);
  Bytes all;
  while (!input.empty()) {
    const bool is_wrong = input.take<std::uint8_t>() % 2 != 0;
    const FrameHeader header = input.take<FrameHeader>();
    const bool is_data = header.type == FrameType::data;
    const std::span<const std::byte> body = input.take_bytes(header.follows);
    const Bytes frame = writer.frame(header, body, is_wrong);
    all.insert(all.end(), frame.begin(), frame.end());
    if (expected.is_corrupt) continue;
    const std::size_t most = is_data ? 512 << 10 : 1024;
    expected.is_corrupt = header.magic != FrameHeader{}.magic || header.follows > most;
    if (!expected.is_corrupt && body.size() < header.follows) break;
    expected.is_corrupt = expected.is_corrupt || (is_wrong && !is_handshake(header.type));
    expected.has_ended = expected.is_corrupt;
    if (expected.is_corrupt) continue;
    const bool is_kept = !is_data || lands(header);
    expected.received.push_back({header, is_kept ? Bytes(body.begin(), body.end()) : Bytes()});
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
    const Outcome outcome = receive(all, setting, all.size());
    fuzz_check(receive(all, setting, portion) == outcome, "portions make a difference");
    for (const Received& received : outcome.received) {
      fuzz_check(is_handshake(received.header.type),
                 "without a key, more than a handshake was received");
    }
    return !outcome.received.empty();
  }
  Outcome expected;
  const Bytes all = frames(input, setting, expected);
  const Outcome whole = receive(all, setting, all.size());
  fuzz_check(whole == expected, "something else was received than was sent");
  fuzz_check(receive(all, setting, portion) == expected, "portions make a difference");
  return !expected.received.empty();
}

}  // namespace gossamer
