// Texts of the command line and of the environment that the commands read.

#include "gossamer/base/fuzz.h"
#include "gossamer/cli/lab_method.h"
#include "gossamer/cli/launcher_env.h"
#include "gossamer/cli/options.h"

namespace gossamer {

Environment fuzz_environment(std::string_view text);

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

bool fuzz_launcher_env(std::span<const std::byte> bytes) {
  const Environment get = fuzz_environment(FuzzBytes(bytes).text());
  return takes([&] {
    const auto found = find_launcher(get);
    if (!found) return;
    fuzz_check(0 <= found->rank && found->rank < found->workers, "a rank out of range");
    fuzz_check(0 <= found->port && found->port <= 65535, "a port out of range");
  });
}

}  // namespace gossamer
