#include "gossamer/transport/net/handshake.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/rand.h>

#include "gossamer/base/errors.h"

namespace gossamer {

Nonce random_nonce() {
  Nonce nonce;
  if (RAND_bytes(reinterpret_cast<unsigned char*>(nonce.data()), static_cast<int>(nonce.size())) !=
      1) {
    fail_io({.place = "net", .what = "the system gives no random bytes"});
  }
  return nonce;
}

std::vector<std::byte> proof_of(const std::string& token, std::string_view role,
                                const Introduction& who, std::span<const std::byte> asked,
                                std::span<const std::byte> own) {
  std::vector<std::byte> said;
  const auto add = [&](std::span<const std::byte> bytes) {
    said.insert(said.end(), bytes.begin(), bytes.end());
  };
  add(std::as_bytes(std::span(role)));
  add(std::as_bytes(std::span(&who.rank, 1)));
  add(std::as_bytes(std::span(&who.generation, 1)));
  add(asked);
  add(own);
  add(std::as_bytes(std::span(who.card)));
  std::vector<std::byte> proof(EVP_MAX_MD_SIZE);
  unsigned length = 0;
  const unsigned char* done = HMAC(EVP_sha256(), token.data(), static_cast<int>(token.size()),
                                   reinterpret_cast<const unsigned char*>(said.data()), said.size(),
                                   reinterpret_cast<unsigned char*>(proof.data()), &length);
  if (done == nullptr) fail_io({.place = "net", .what = "HMAC-SHA256 cannot be computed"});
  proof.resize(length);
  return proof;
}

bool are_equal(std::span<const std::byte> a, std::span<const std::byte> b) {
  return a.size() == b.size() && CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

}  // namespace gossamer
