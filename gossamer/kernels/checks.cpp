#include "gossamer/kernels/checks.h"

#include <cstdint>
#include <string>

#include "gossamer/base/errors.h"

namespace gossamer {

void require_length(std::string_view pass, std::string_view buffer, std::size_t got,
                    std::size_t expected) {
  if (got == expected) return;
  const std::string what =
      std::string(buffer) + " must have as many elements as x, " + std::to_string(expected);
  fail_argument({.place = pass,
                 .what = what,
                 .got = std::to_string(got),
                 .remedy = "pass spans of one length"});
}

void require_digests(std::string_view pass, std::size_t got, std::size_t elements) {
  if (got == digest_count(elements)) return;
  fail_argument({.place = pass,
                 .what = "there must be " + std::to_string(digest_count(elements)) + " digests",
                 .got = std::to_string(got),
                 .remedy = "one for each tile of " + std::to_string(kDigestTile) + " elements"});
}

void require_positive(std::string_view pass, std::string_view name, long long value) {
  if (value >= 1) return;
  const std::string what = std::string(name) + " must be 1 or more";
  fail_argument({.place = pass,
                 .what = what,
                 .got = std::to_string(value),
                 .remedy = "steps are counted from 1"});
}

void require_apart(std::string_view pass, std::span<const std::byte> x,
                   std::span<const std::byte> out) {
  const auto x_begin = reinterpret_cast<std::uintptr_t>(x.data());
  const auto out_begin = reinterpret_cast<std::uintptr_t>(out.data());
  if (x_begin + x.size() <= out_begin || out_begin + out.size() <= x_begin) return;
  const auto distance = static_cast<std::intptr_t>(out_begin - x_begin);
  fail_argument({.place = pass,
                 .what = "out must not overlap x",
                 .got = "out " + std::to_string(distance) + " bytes behind x",
                 .remedy = "leave out empty to write over x"});
}

}  // namespace gossamer
