#include "gossamer/cli/text_table.h"

#include <algorithm>
#include <cmath>

namespace gossamer {

int width_of(std::string_view text) {
  return static_cast<int>(
      std::ranges::count_if(text, [](char byte) { return (byte & 0xC0) != 0x80; }));
}

std::string text_table(const std::vector<std::vector<std::string>>& rows, std::size_t left) {
  std::vector<int> widths;
  for (const auto& row : rows) {
    widths.resize(std::max(widths.size(), row.size()));
    for (std::size_t k = 0; k < row.size(); ++k) {
      widths[k] = std::max(widths[k], width_of(row[k]));
    }
  }
  std::string text;
  for (const auto& row : rows) {
    std::string line;
    for (std::size_t k = 0; k < row.size(); ++k) {
      const std::string space(static_cast<std::size_t>(widths[k] - width_of(row[k])), ' ');
      line += (k == 0 ? "" : "  ") + (k < left ? row[k] + space : space + row[k]);
    }
    line.resize(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  }
  return text;
}

std::string four_digits(double value) { return std::isnan(value) ? "-" : formatted("%.4g", value); }

}  // namespace gossamer
