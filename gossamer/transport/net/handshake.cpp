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

std::span<const std::byte> number_bytes(const std::uint64_t& number) {
  return std::as_bytes(std::span(&number, 1));
}

/// Fields one after another, each after its length, so that no two lists have the same bytes.
class Fields {
 public:
  Fields& add(std::span<const std::byte> field) {
    const std::uint64_t length = field.size();
    const auto head = number_bytes(length);
    bytes_.insert(bytes_.end(), head.begin(), head.end());
    bytes_.insert(bytes_.end(), field.begin(), field.end());
    return *this;
  }
  Fields& add(std::string_view text) { return add(std::as_bytes(std::span(text))); }
  Fields& add(const std::uint64_t& number) { return add(number_bytes(number)); }
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

/// What only somebody who knows the token can compute, of this handshake and for this purpose.
Proof proof_of(const std::string& token, std::string_view purpose, const Handshake& handshake,
               std::uint64_t generation = 0) {
  Fields fields;
  fields.add(purpose)
      .add(std::uint64_t{kWireVersion})
      .add(handshake.responder)
      .add(generation)
      .add(handshake.initiator.rank)
      .add(handshake.initiator.member)
      .add(handshake.initiator.generation)
      .add(std::string_view(handshake.initiator.endpoint))
      .add(handshake.responder_nonce)
      .add(handshake.initiator_nonce)
      .add(std::uint64_t{handshake.responder_authenticates})
      .add(std::uint64_t{handshake.initiator_authenticates});
  Proof proof;
  unsigned length = 0;
  const unsigned char* done =
      HMAC(EVP_sha256(), token.data(), static_cast<int>(token.size()),
           reinterpret_cast<const unsigned char*>(fields.bytes().data()), fields.bytes().size(),
           reinterpret_cast<unsigned char*>(proof.data()), &length);
  if (done == nullptr || length != proof.size()) {
    fail_io({.place = "net", .what = "HMAC-SHA256 cannot be computed"});
  }
  return proof;
}

std::uint64_t version_of(const FrameHeader& header) { return header.offset; }

std::string other_version(const FrameHeader& header) {
  return "the peer speaks version " + std::to_string(version_of(header)) +
         " of what workers say to each other, this worker version " + std::to_string(kWireVersion) +
         "; install the same gossamer on all hosts";
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

HandshakeFrame make_challenge(const Nonce& nonce, bool authenticates) {
  return {.header = {.type = FrameType::challenge,
                     .number = authenticates ? 1U : 0U,
                     .offset = kWireVersion},
          .text = {nonce.begin(), nonce.end()}};
}

std::optional<Nonce> read_challenge(const FrameHeader& header, std::span<const std::byte> text) {
  Nonce nonce;
  if (header.type != FrameType::challenge || !read(text, nonce)) return std::nullopt;
  return nonce;
}

HandshakeFrame make_hello(const std::string& token, const Handshake& handshake) {
  Fields text;
  text.add(handshake.initiator_nonce)
      .add(proof_of(token, "hello", handshake))
      .add(handshake.initiator.member)
      .add(std::string_view(handshake.initiator.endpoint));
  return {.header = {.type = FrameType::hello,
                     .number = handshake.initiator.rank,
                     .bytes = handshake.initiator.generation,
                     .offset = kWireVersion,
                     .memory = handshake.initiator_authenticates ? 1U : 0U},
          .text = text.take()};
}

std::optional<Handshake> read_hello(const std::string& token, const Handshake& before,
                                    const FrameHeader& header, std::span<const std::byte> text) {
  const auto fields = fields_of(text, 4);
  const bool is_hello = header.type == FrameType::hello && version_of(header) == kWireVersion;
  if (!is_hello || !fields) return std::nullopt;
  Handshake handshake = before;
  handshake.initiator = {.rank = header.number, .generation = header.bytes};
  handshake.initiator_authenticates = header.memory != 0;
  Proof proof;
  if (!read((*fields)[0], handshake.initiator_nonce) || !read((*fields)[1], proof) ||
      !read((*fields)[2], handshake.initiator.member)) {
    return std::nullopt;
  }
  handshake.initiator.endpoint = text_of((*fields)[3]);
  if (!are_equal(proof, proof_of(token, "hello", handshake))) return std::nullopt;
  return handshake;
}

HandshakeFrame make_welcome(const std::string& token, const Handshake& handshake,
                            std::uint64_t generation) {
  const Proof proof = proof_of(token, "welcome", handshake, generation);
  return {.header = {.type = FrameType::welcome, .bytes = generation},
          .text = {proof.begin(), proof.end()}};
}

std::optional<std::uint64_t> read_welcome(const std::string& token, const Handshake& handshake,
                                          const FrameHeader& header,
                                          std::span<const std::byte> text) {
  if (header.type != FrameType::welcome) return std::nullopt;
  if (!are_equal(text, proof_of(token, "welcome", handshake, header.bytes))) return std::nullopt;
  return header.bytes;
}

std::array<std::byte, 32> key_for(const std::string& token, std::string_view purpose) {
  return proof_of(token, purpose, {});
}

SessionKeys session_keys(const std::string& token, const Handshake& handshake) {
  SessionKeys keys;
  const auto key = [&](std::string_view purpose, FrameKey& into) {
    const Proof bytes = proof_of(token, purpose, handshake);
    std::copy_n(bytes.begin(), into.size(), into.begin());
  };
  key("frames of the caller", keys.initiator);
  key("frames of the called", keys.responder);
  return keys;
}

Initiator::Step Initiator::take(const FrameHeader& header, std::span<const std::byte> text) {
  if (header.type == FrameType::challenge) return take_challenge(header, text);
  if (is_verified_) return {};
  const auto generation = read_welcome(options_.token, handshake_, header, text);
  is_verified_ = generation == options_.generation;
  if (is_verified_) return {};
  return {.failure = generation ? "the peer restarted" : options_.impostor};
}

Initiator::Step Initiator::take_challenge(const FrameHeader& header,
                                          std::span<const std::byte> text) {
  if (has_sent_hello_) return {};
  if (version_of(header) != kWireVersion) return {.failure = other_version(header)};
  const auto nonce = read_challenge(header, text);
  if (!nonce) return {.failure = options_.impostor};
  has_sent_hello_ = true;
  handshake_ = {.initiator = options_.own,
                .responder = options_.responder,
                .responder_nonce = *nonce,
                .initiator_nonce = random_nonce(),
                .responder_authenticates = header.number != 0,
                .initiator_authenticates = options_.authenticates};
  return {.hello = make_hello(options_.token, handshake_)};
}

}  // namespace gossamer
