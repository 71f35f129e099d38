#include "gossamer/base/lines.h"

#include <optional>

namespace gossamer {
namespace {

/// Takes the first line away from `text`; nothing where it has none.
std::optional<std::string> take_line(std::string_view& text) {
  if (text.empty()) return std::nullopt;
  const std::size_t end = text.find('\n');
  std::string line(text.substr(0, end));
  text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  return line;
}

}  // namespace

LinePair first_difference(std::string_view here, std::string_view there) {
  for (;;) {
    const std::optional<std::string> ours = take_line(here);
    const std::optional<std::string> theirs = take_line(there);
    if (ours != theirs || (!ours && !theirs)) {
      return {ours.value_or("nothing"), theirs.value_or("nothing")};
    }
  }
}

}  // namespace gossamer
