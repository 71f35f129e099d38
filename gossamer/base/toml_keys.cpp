#include "gossamer/base/toml_keys.h"

#include <algorithm>

#include "gossamer/base/errors.h"

namespace gossamer {
namespace {

constexpr int kMostDots = 32;

/// Where the text in quotes that begins at `begin` has ended: behind its last quote, or at the end
/// of a line that a single quote does not reach beyond.
std::size_t end_of_quoted(std::string_view text, std::size_t begin) {
  const char quote = text[begin];
  const std::string_view three = quote == '"' ? "\"\"\"" : "'''";
  const bool has_lines = text.substr(begin).starts_with(three);
  std::size_t at = begin + (has_lines ? 3 : 1);
  for (; at < text.size(); ++at) {
    if (quote == '"' && text[at] == '\\') {
      ++at;
    } else if (!has_lines && text[at] == '\n') {
      return at;
    } else if (!has_lines && text[at] == quote) {
      return at + 1;
    } else if (has_lines && text.substr(at).starts_with(three)) {
      const std::size_t past = text.find_first_not_of(quote, at);
      return std::min({past, at + 5, text.size()});  // its last two may be text
    }
  }
  return text.size();
}

[[noreturn]] void refuse(std::string_view text, const std::string& file, std::size_t at) {
  const std::string_view before = text.substr(0, at);
  const auto line = std::ranges::count(before, '\n') + 1;
  const std::size_t column = at - (before.rfind('\n') + 1) + 1;  // npos + 1 is 0
  const std::string place = file + ":" + std::to_string(line) + ":" + std::to_string(column);
  fail_argument({.place = place,
                 .what = "a key may have up to " + std::to_string(kMostDots) + " dots",
                 .got = "more",
                 .remedy = "name fewer tables in it, or put it in quotes if the dots are its own"});
}

}  // namespace

void refuse_long_keys(std::string_view text, const std::string& file) {
  int dots = 0;  // since the last character that no key goes on after
  for (std::size_t at = 0; at < text.size();) {
    const char c = text[at];
    if (c == '"' || c == '\'') {
      at = end_of_quoted(text, at);
      continue;
    }
    if (c == '#') {
      at = std::min(text.find('\n', at), text.size());
      continue;
    }
    if (c == '.' && ++dots > kMostDots) refuse(text, file, at);
    if (std::string_view("\n=,[]{}").find(c) != std::string_view::npos) dots = 0;
    ++at;
  }
}

}  // namespace gossamer
