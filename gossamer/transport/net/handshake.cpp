#include "gossamer/transport/net/handshake.h"

#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/rand.h>

#include <algorithm>
#include <cstring>

#include "gossamer/base/errors.h"

namespace gossamer {
namespace {

constexpr std::size_t kProofBytes = 32;
using Proof = std::array<std::byte, kProofBytes>;

std::span<const std::byte> bytes_of(const std::uint64_t& number) {
  return std::as_bytes(std::span(&number, 1));
}

/// Fields one after another, each after its length, so that no two lists have the same bytes.
class Fields {
 public:
  Fields& add(std::span<const std::byte> field) {
    const std::uint64_t length = field.size();
    const auto head = bytes_of(length);
    bytes_.insert(bytes_.end(), head.begin(), head.end());
    bytes_.insert(bytes_.end(), field.begin(), field.end());
    return *this;
  }
  Fields& add(std::string_view text) { return add(std::as_bytes(std::span(text))); }
  Fields& add(const std::uint64_t& number) { return add(bytes_of(number)); }
  std::span<const std::byte> bytes() const { return bytes_; }
  std::vector<std::byte> take() { return std::move(bytes_); }

 private:
  std::vector<std::byte> bytes_;
};

/// Exactly `count` fields; nothing where that is not what the text has.
std::optional<std::vector<std::span<const std::byte>>> fields_of(std::span<const std::byte> text,
                                                                 std::size_t count) {
  std::vector<std::span<const std::byte>> fields;
  while (fields.size() < count) {
    std::uint64_t length = 0;
    if (text.size() < sizeof(length)) return std::nullopt;
    std::memcpy(&length, text.data(), sizeof(length));
    text = text.subspan(sizeof(length));
    if (length > text.size()) return std::nullopt;
    fields.push_back(text.first(length));
    text = text.subspan(length);
  }
  if (!text.empty()) return std::nullopt;
  return fields;
}

template <std::size_t kSize>
bool read(std::span<const std::byte> field, std::array<std::byte, kSize>& value) {
  if (field.size() != kSize) return false;
  std::ranges::copy(field, value.begin());
  return true;
}

bool read(std::span<const std::byte> field, std::uint64_t& value) {
  if (field.size() != sizeof(value)) return false;
  std::memcpy(&value, field.data(), sizeof(value));
  return true;
}

/// What only somebody who knows the token can say, of this meeting and for this purpose.
Proof proof_of(const std::string& token, std::string_view purpose, const Meeting& meeting,
               std::uint64_t generation = 0) {
  Fields said;
  said.add(purpose)
      .add(std::uint64_t{kWireVersion})
      .add(meeting.called)
      .add(generation)
      .add(meeting.caller.rank)
      .add(meeting.caller.member)
      .add(meeting.caller.generation)
      .add(std::string_view(meeting.caller.card))
      .add(meeting.asked)
      .add(meeting.told)
      .add(std::uint64_t{meeting.asks})
      .add(std::uint64_t{meeting.tells});
  Proof proof;
  unsigned length = 0;
  const unsigned char* done =
      HMAC(EVP_sha256(), token.data(), static_cast<int>(token.size()),
           reinterpret_cast<const unsigned char*>(said.bytes().data()), said.bytes().size(),
           reinterpret_cast<unsigned char*>(proof.data()), &length);
  if (done == nullptr || length != proof.size()) {
    fail_io({.place = "net", .what = "HMAC-SHA256 cannot be computed"});
  }
  return proof;
}

}  // namespace

Nonce random_nonce() {
  Nonce nonce;
  if (RAND_bytes(reinterpret_cast<unsigned char*>(nonce.data()), static_cast<int>(nonce.size())) !=
      1) {
    fail_io({.place = "net", .what = "the system gives no random bytes"});
  }
  return nonce;
}

Greeting challenge(const Nonce& nonce, bool asks) {
  return {.words = {.say = Say::challenge, .number = asks ? 1U : 0U, .offset = kWireVersion},
          .text = {nonce.begin(), nonce.end()}};
}

std::uint64_t version_of(const Words& words) { return words.offset; }

std::string other_version(const Words& words) {
  return "the peer speaks version " + std::to_string(version_of(words)) +
         " of what workers say to each other, this worker version " + std::to_string(kWireVersion) +
         "; install the same gossamer on all hosts";
}

std::optional<Nonce> nonce_of(const Words& words, std::span<const std::byte> text) {
  Nonce nonce;
  if (words.say != Say::challenge || !read(text, nonce)) return std::nullopt;
  return nonce;
}

Greeting hello(const std::string& token, const Meeting& meeting) {
  Fields text;
  text.add(meeting.told)
      .add(proof_of(token, "hello", meeting))
      .add(meeting.caller.member)
      .add(std::string_view(meeting.caller.card));
  return {.words = {.say = Say::hello,
                    .number = meeting.caller.rank,
                    .bytes = meeting.caller.generation,
                    .offset = kWireVersion,
                    .memory = meeting.tells ? 1U : 0U},
          .text = text.take()};
}

std::optional<Meeting> meeting_of(const std::string& token, const Meeting& before,
                                  const Words& words, std::span<const std::byte> text) {
  const auto fields = fields_of(text, 4);
  if (words.say != Say::hello || version_of(words) != kWireVersion || !fields) return std::nullopt;
  Meeting meeting = before;
  meeting.caller = {.rank = words.number, .generation = words.bytes};
  meeting.tells = words.memory != 0;
  Proof proof;
  if (!read((*fields)[0], meeting.told) || !read((*fields)[1], proof) ||
      !read((*fields)[2], meeting.caller.member)) {
    return std::nullopt;
  }
  meeting.caller.card = text_of((*fields)[3]);
  if (!are_equal(proof, proof_of(token, "hello", meeting))) return std::nullopt;
  return meeting;
}

Greeting welcome(const std::string& token, const Meeting& meeting, std::uint64_t generation) {
  const Proof proof = proof_of(token, "welcome", meeting, generation);
  return {.words = {.say = Say::welcome, .bytes = generation},
          .text = {proof.begin(), proof.end()}};
}

std::optional<std::uint64_t> generation_of(const std::string& token, const Meeting& meeting,
                                           const Words& words, std::span<const std::byte> text) {
  if (words.say != Say::welcome) return std::nullopt;
  if (!are_equal(text, proof_of(token, "welcome", meeting, words.bytes))) return std::nullopt;
  return words.bytes;
}

std::array<std::byte, 32> key_for(const std::string& token, std::string_view purpose) {
  return proof_of(token, purpose, {});
}

SessionKeys session_keys(const std::string& token, const Meeting& meeting) {
  SessionKeys keys;
  const auto key = [&](std::string_view purpose, FrameKey& into) {
    const Proof bytes = proof_of(token, purpose, meeting);
    std::copy_n(bytes.begin(), into.size(), into.begin());
  };
  key("frames of the caller", keys.caller);
  key("frames of the called", keys.called);
  return keys;
}

}  // namespace gossamer
