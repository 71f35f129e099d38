#include "gossamer/base/codec.h"

#include <array>

#include "gossamer/base/errors.h"

namespace gossamer {

Codec find_codec(std::string_view name) {
  constexpr std::array kCodecs{Codec::fp32, Codec::bf16, Codec::int8};
  std::array<std::string_view, kCodecs.size()> names;
  for (std::size_t i = 0; i < kCodecs.size(); ++i) {
    names[i] = name_of(kCodecs[i]);
    if (names[i] == name) return kCodecs[i];
  }
  fail_unknown_name("codec", "codec", name, names);
}

}  // namespace gossamer
