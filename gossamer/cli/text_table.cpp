#include "gossamer/cli/text_table.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

namespace gossamer {
namespace {

/// In characters, of which UTF-8 takes several bytes.
std::size_t characters_of(const std::string& text) {
  return static_cast<std::size_t>(
      std::ranges::count_if(text, [](char byte) { return (byte & 0xC0) != 0x80; }));
}

}  // namespace

std::string text_table(const std::vector<std::vector<std::string>>& rows, std::size_t left) {
  std::vector<std::size_t> widths;
  for (const auto& row : rows) {
    widths.resize(std::max(widths.size(), row.size()));
    for (std::size_t k = 0; k < row.size(); ++k) {
      widths[k] = std::max(widths[k], characters_of(row[k]));
    }
  }
  std::string text;
  for (const auto& row : rows) {
    std::string line;
    for (std::size_t k = 0; k < row.size(); ++k) {
      const std::string space(widths[k] - characters_of(row[k]), ' ');
      line += (k == 0 ? "" : "  ") + (k < left ? row[k] + space : space + row[k]);
    }
    line.resize(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  }
  return text;
}

std::string four_digits(double value) {
  if (std::isnan(value)) return "-";
  char text[32];
  std::snprintf(text, sizeof text, "%.4g", value);
  return text;
}

}  // namespace gossamer
