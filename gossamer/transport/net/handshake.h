#pragma once
/// How two ends of a connection prove that they know the job's token, without telling it.

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace gossamer {

using Nonce = std::array<std::byte, 32>;
inline constexpr std::size_t kProofBytes = 32;

/// Who a worker is, as it says where it connects.
struct Introduction {
  std::uint64_t rank = 0;
  std::uint64_t generation = 0;
  std::string card = {};  ///< where it can be reached; see card.h
};

/// Bytes that nobody can guess. Throws IoError when the system gives none.
Nonce random_nonce();

/// What only somebody who knows the token can say in this role, of this worker, after these nonces:
/// HMAC-SHA256.
std::vector<std::byte> proof_of(const std::string& token, std::string_view role,
                                const Introduction& who, std::span<const std::byte> asked,
                                std::span<const std::byte> own);

/// In a time that does not tell where they differ.
bool are_equal(std::span<const std::byte> a, std::span<const std::byte> b);

}  // namespace gossamer
