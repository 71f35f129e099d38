#pragma once
/// What the entry points of the kernels share: checks of their spans, and the mix as pointers.
/// Internal.

#include <cstddef>
#include <span>
#include <string_view>

#include "gossamer/kernels/kernel_table.h"

namespace gossamer {

/// Throws std::invalid_argument that names the pass and the buffer unless got == expected.
void require_length(std::string_view pass, std::string_view buffer, std::size_t got,
                    std::size_t expected);

/// Throws std::invalid_argument that names the pass unless `got` is the digests of so many
/// elements.
void require_digests(std::string_view pass, std::size_t got, std::size_t elements);

/// Throws std::invalid_argument unless value ≥ 1.
void require_positive(std::string_view pass, std::string_view name, long long value);

/// Throws std::invalid_argument that names the pass if the two overlap.
void require_apart(std::string_view pass, std::span<const std::byte> x,
                   std::span<const std::byte> out);

/// The mix of x, into `out` unless that is empty; throws if `out` has another length or overlaps x.
template <class T>
MixArgs<T> mix_args(std::string_view pass, std::span<T> x, std::span<T> out, const Mix<T>& mix) {
  if (!out.empty()) {
    require_length(pass, "out", out.size(), x.size());
    require_apart(pass, std::as_bytes(x), std::as_bytes(out));
  }
  if (!mix.digests.empty()) require_digests(pass, mix.digests.size(), x.size());
  return {.x = x.data(),
          .out = out.empty() ? x.data() : out.data(),
          .self_weight = mix.self_weight,
          .sources = mix.sources.data(),
          .source_count = mix.sources.size(),
          .measure_distance = mix.measure_distance,
          .digests = mix.digests.empty() ? nullptr : mix.digests.data()};
}

}  // namespace gossamer
