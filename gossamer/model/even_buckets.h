#pragma once
/// A payload cut into buckets.

#include <cstdint>
#include <vector>

namespace gossamer {

/// `elements` in `buckets` ≥ 1 nearly equal buckets.
std::vector<std::int64_t> even_buckets(std::int64_t elements, int buckets);

}  // namespace gossamer
