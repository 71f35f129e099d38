#include "gossamer/model/even_buckets.h"

#include <string>

#include "gossamer/base/errors.h"

namespace gossamer {

std::vector<std::int64_t> even_buckets(std::int64_t elements, int buckets) {
  if (elements < 0 || buckets < 1) {
    fail_argument({.place = "buckets",
                   .what = "there must be elements ≥ 0 and at least one bucket",
                   .got = std::to_string(elements) + " in " + std::to_string(buckets)});
  }
  std::vector<std::int64_t> sizes;
  for (std::int64_t b = 0; b < buckets; ++b) {
    sizes.push_back(elements * (b + 1) / buckets - elements * b / buckets);
  }
  return sizes;
}

}  // namespace gossamer
