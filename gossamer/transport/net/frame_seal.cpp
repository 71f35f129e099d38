#include "gossamer/transport/net/frame_seal.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>

#include <cstring>

#include "gossamer/base/errors.h"
#include "gossamer/transport/net/crc32c.h"

namespace gossamer {
namespace {

constexpr std::size_t kNonceBytes = 12;

void check(int result) {
  if (result != 1) fail_io({.place = "net", .what = "AES-GMAC cannot be computed"});
}

}  // namespace

bool are_equal(std::span<const std::byte> a, std::span<const std::byte> b) {
  return a.size() == b.size() && CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

void FrameSeal::Free::operator()(EVP_CIPHER_CTX* context) const { EVP_CIPHER_CTX_free(context); }

FrameSeal::FrameSeal(const FrameKey& key, bool authenticates_payloads)
    : context_(EVP_CIPHER_CTX_new()), authenticates_payloads_(authenticates_payloads) {
  check(EVP_EncryptInit_ex(context_.get(), EVP_aes_128_gcm(), nullptr,
                           reinterpret_cast<const unsigned char*>(key.data()), nullptr));
}

void FrameSeal::begin(Part part) {
  is_checksum_ = part == Part::payload && !authenticates_payloads_;
  checksum_ = 0;
  if (is_checksum_) return;
  std::array<unsigned char, kNonceBytes> nonce = {};
  std::memcpy(nonce.data(), &frame_, sizeof(frame_));
  nonce.back() = static_cast<unsigned char>(part);
  check(EVP_EncryptInit_ex(context_.get(), nullptr, nullptr, nullptr, nonce.data()));
}

void FrameSeal::add(std::span<const std::byte> bytes) {
  int length = 0;
  if (bytes.empty()) return;
  if (is_checksum_) {
    checksum_ = crc32c(bytes, checksum_);
    return;
  }
  check(EVP_EncryptUpdate(context_.get(), nullptr, &length,
                          reinterpret_cast<const unsigned char*>(bytes.data()),
                          static_cast<int>(bytes.size())));
}

FrameCode FrameSeal::end() {
  FrameCode code = {};
  if (is_checksum_) {
    std::memcpy(code.data(), &checksum_, sizeof(checksum_));
    return code;
  }
  int length = 0;
  check(
      EVP_EncryptFinal_ex(context_.get(), reinterpret_cast<unsigned char*>(code.data()), &length));
  check(EVP_CIPHER_CTX_ctrl(context_.get(), EVP_CTRL_AEAD_GET_TAG, static_cast<int>(code.size()),
                            code.data()));
  return code;
}

}  // namespace gossamer
