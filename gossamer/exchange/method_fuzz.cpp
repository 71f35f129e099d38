// Methods as every door takes them: PATTERN@TOPOLOGY[:WORD…].

#include "gossamer/base/fuzz.h"
#include "gossamer/exchange/method.h"

namespace gossamer {

bool fuzz_method(std::span<const std::byte> bytes) {
  FuzzBytes input(bytes);
  const unsigned workers = input.take<std::uint8_t>();
  const std::string_view text = input.text();
  return takes([&] {
    const MethodSpec method = parse_method(text);
    const std::string name = name_of(method);
    fuzz_check(parse_method(name) == method, "'" + name + "' is another method");
    const HostShape shape{.workers_per_host = {1 + static_cast<int>(workers % 4),
                                               1 + static_cast<int>(workers / 4 % 4)}};
    if (method.schedule.topology.ends_with(".json")) return;
    takes([&] { check_method(method, shape); });
  });
}

}  // namespace gossamer
