// Quantities with a unit, as people write them.

#include <cmath>

#include "gossamer/base/fuzz.h"
#include "gossamer/base/units.h"

namespace gossamer {

bool fuzz_units(std::span<const std::byte> bytes) {
  const std::string_view text = FuzzBytes(bytes).text();
  const bool is_rate = takes([&] {
    const double rate = parse_rate(text);
    fuzz_check(rate >= 0, "a rate below 0");
    fuzz_check(std::isinf(rate) == (text == "unlimited"), "a rate without limit");
    if (std::isfinite(rate)) {
      fuzz_check(parse_rate(shortest(rate) + "B/s") == rate, "another rate than was written");
    }
    format_rate(rate);
  });
  const bool is_duration = takes([&] {
    const double seconds = parse_duration(text);
    fuzz_check(seconds >= 0 && std::isfinite(seconds), "a duration that is none");
    fuzz_check(parse_duration(shortest(seconds) + "s") == seconds, "another duration");
    format_duration(seconds);
  });
  const bool is_size = takes([&] {
    const std::int64_t size = parse_bytes(text);
    fuzz_check(size >= 0, "a size below 0");
    if (size < std::int64_t{1} << 53) {
      fuzz_check(parse_bytes(std::to_string(size) + "B") == size, "another size");
    }
    format_bytes(static_cast<double>(size));
  });
  return is_rate || is_duration || is_size;
}

}  // namespace gossamer
