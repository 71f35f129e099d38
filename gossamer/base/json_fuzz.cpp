// JSON of anybody.

#include "gossamer/base/fuzz.h"
#include "gossamer/base/json.h"

namespace gossamer {

bool fuzz_json(std::span<const std::byte> bytes) {
  FuzzBytes input(bytes);
  const int levels = input.take<std::uint8_t>() % 10;
  Json json;
  try {
    json = parse_json(input.text(), levels);
  } catch (const std::invalid_argument&) {  // its place is the caller's to say
    return false;
  }
  const std::string text = json.dump();
  const Json again = parse_json(text, levels);
  fuzz_check(again == json && again.dump() == text, "another value after writing and reading");
  return true;
}

}  // namespace gossamer
