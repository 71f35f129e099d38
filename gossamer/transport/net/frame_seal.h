#pragma once
/// FrameSeal: authenticates the frames of one direction of a stream that is not over TLS.

#include <openssl/types.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

namespace gossamer {

using FrameKey = std::array<std::byte, 16>;
using FrameCode = std::array<std::byte, 16>;

/// In a time that does not tell where they differ.
bool are_equal(std::span<const std::byte> a, std::span<const std::byte> b);

/// AES-128-GMAC (NIST SP 800-38D) of a frame's head, which names the code of what follows, and of
/// what follows: a text, or a part of a payload. The nonce counts frames, so that none can be left
/// out, repeated or moved. A key is for one direction of one connection. Payloads may have a
/// CRC-32C instead, which costs a third and finds faults, but nobody who means it.
class FrameSeal {
 public:
  /// Throws IoError where OpenSSL does not do it.
  explicit FrameSeal(const FrameKey& key, bool authenticates_payloads = true);

  enum class Part { head, text, payload };

  /// The code of a part of the present frame begins.
  void begin(Part part);
  void add(std::span<const std::byte> bytes);
  /// Of all that was added since begin().
  FrameCode end();
  /// The next frame is the present one.
  void next() { ++frame_; }

 private:
  struct Free {
    void operator()(EVP_CIPHER_CTX* context) const;
  };

  std::unique_ptr<EVP_CIPHER_CTX, Free> context_;
  const bool authenticates_payloads_;
  std::uint64_t frame_ = 0;
  bool is_checksum_ = false;  ///< the present code is
  std::uint32_t checksum_ = 0;
};

}  // namespace gossamer
