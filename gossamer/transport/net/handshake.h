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

/// Bytes that nobody can guess. Throws IoError when the system gives none.
Nonce random_nonce();

/// What only somebody who knows the token can say in the role of this rank after these nonces:
/// HMAC-SHA256.
std::vector<std::byte> proof_of(const std::string& token, std::string_view role, std::uint64_t rank,
                                std::span<const std::byte> asked, std::span<const std::byte> own);

/// In a time that does not tell where they differ.
bool are_equal(std::span<const std::byte> a, std::span<const std::byte> b);

}  // namespace gossamer
