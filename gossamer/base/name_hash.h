#pragma once
/// A number made of a name, the same on every machine.

#include <cstdint>
#include <string_view>

namespace gossamer {

/// FNV-1a, 64 bits. No secret: names that collide are easy to find.
constexpr std::uint64_t hash_of_name(std::string_view name) {
  std::uint64_t hash = 0xcbf29ce484222325U;
  for (const char c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3U;
  return hash;
}

}  // namespace gossamer
