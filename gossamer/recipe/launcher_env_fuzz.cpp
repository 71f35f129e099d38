// Variables that a launcher sets.

#include "gossamer/base/fuzz.h"
#include "gossamer/recipe/launcher_env.h"

namespace gossamer {

Environment fuzz_environment(std::string_view text);

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
