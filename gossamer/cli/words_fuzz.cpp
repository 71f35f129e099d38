// Texts of the command line.

#include "gossamer/base/fuzz.h"
#include "gossamer/cli/amount.h"
#include "gossamer/cli/lab/method.h"
#include "gossamer/recipe/host_shape.h"

namespace gossamer {

bool fuzz_options(std::span<const std::byte> bytes) {
  FuzzBytes input(bytes);
  const int hosts = input.take<std::uint8_t>();
  const std::string text(input.text());
  const bool is_shape = takes([&] {
    const HostShape shape = host_shape_of(hosts, 2, text, "cli");
    check_host_shape(shape);
    describe(shape);
  });
  return takes([&] {
           const std::int64_t amount = parse_amount("--parameters", text, "cli");
           fuzz_check(parse_amount("--parameters", std::to_string(amount), "cli") == amount,
                      "another");
         }) ||
         is_shape;
}

bool fuzz_lab_method(std::span<const std::byte> bytes) {
  const std::string text(FuzzBytes(bytes).text());
  if (text.find(".json") != std::string::npos) return false;
  return takes([&] { parse_lab_method(text, even_hosts(2, 2), {}); });
}

}  // namespace gossamer
