#pragma once
/// Tables of text for people.

#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

namespace gossamer {

/// Two blanks between columns, the first `left` columns to the left, the others to the right; no
/// blanks at the ends of lines. Cells may be UTF-8 and a row may have fewer of them.
std::string text_table(const std::vector<std::vector<std::string>>& rows, std::size_t left = 1);

/// In characters, of which UTF-8 takes several bytes.
int width_of(std::string_view text);

/// What printf writes; cut after 511 bytes.
std::string formatted(const char* form, auto... values) {
  char text[512];
  std::snprintf(text, sizeof text, form, values...);
  return text;
}

/// "0.0754", "1.23e-07", "inf"; "-" for NaN.
std::string four_digits(double value);

}  // namespace gossamer
