// The environment of a process, as a launcher might have left it.

#include <map>

#include "gossamer/base/fuzz.h"
#include "gossamer/base/launchers.h"

namespace gossamer {

/// An environment with a variable in each line of a text.
Environment fuzz_environment(std::string_view text) {
  std::map<std::string, std::string> variables;
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    const std::size_t sign = line.find('=');
    if (sign == std::string_view::npos || sign + 1 == line.size()) continue;
    variables.emplace(line.substr(0, sign), line.substr(sign + 1));
  }
  return [variables](const std::string& name) -> std::optional<std::string> {
    const auto found = variables.find(name);
    return found == variables.end() ? std::nullopt : std::optional(found->second);
  };
}

bool fuzz_launchers(std::span<const std::byte> bytes) {
  const Environment get = fuzz_environment(FuzzBytes(bytes).text());
  bool is_told = false;
  const bool is_taken =
      takes([&] { is_told = slurm_tasks(get).has_value() || started_together(get).has_value(); });
  return is_taken && is_told;
}

}  // namespace gossamer
