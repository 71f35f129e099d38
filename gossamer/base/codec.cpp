#include "gossamer/base/codec.h"

#include <array>

#include "gossamer/base/errors.h"

namespace gossamer {

Codec find_codec(std::string_view name) {
  std::array<std::string_view, std::size(kAllCodecs)> names;
  for (std::size_t i = 0; i < names.size(); ++i) {
    names[i] = name_of(kAllCodecs[i]);
    if (names[i] == name) return kAllCodecs[i];
  }
  fail_unknown_name("codec", "codec", name, names);
}

}  // namespace gossamer
