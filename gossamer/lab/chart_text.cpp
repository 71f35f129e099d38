#include "gossamer/lab/chart_text.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdio>

namespace gossamer::drawing {
namespace {

constexpr double kRounding = 1e-6;
constexpr char32_t kUnreadable = 0xFFFD;

/// How many bytes a character has that begins with this one; 0 where none does.
std::size_t length_of(unsigned char lead) {
  if (lead < 0x80) return 1;
  if (lead >= 0xC2 && lead < 0xE0) return 2;
  if (lead >= 0xE0 && lead < 0xF0) return 3;
  return lead >= 0xF0 && lead < 0xF5 ? 4 : 0;
}

/// The character that begins at `at`, which moves behind it.
char32_t next(std::string_view text, std::size_t& at) {
  const auto byte = [&](std::size_t k) { return static_cast<unsigned char>(text[k]); };
  const std::size_t length = length_of(byte(at));
  const std::size_t begin = at++;
  if (length == 0 || begin + length > text.size()) return kUnreadable;
  if (length == 1) return byte(begin);
  char32_t letter = byte(begin) & (0x7Fu >> length);
  for (std::size_t k = begin + 1; k < begin + length; ++k) {
    if ((byte(k) & 0xC0u) != 0x80) return kUnreadable;
    letter = (letter << 6) | (byte(k) & 0x3Fu);
  }
  constexpr std::array<char32_t, 5> kSmallest{0, 0, 0x80, 0x800, 0x10000};
  const bool surrogate = letter >= 0xD800 && letter < 0xE000;
  // XML forbids the last two as well.
  const bool none = letter > 0x10FFFF || letter == 0xFFFE || letter == 0xFFFF;
  if (letter < kSmallest[length] || surrogate || none) return kUnreadable;
  at = begin + length;
  return letter;
}

/// In units of the font's size, as DejaVu Sans and Arial have it at most.
double width_of(char32_t letter) {
  if (letter >= 0x2E80) return 1;
  if (letter > 0x7F) return letter == 0x202F || letter == 0x2009 ? 0.25 : 0.66;
  const auto is_in = [&](std::string_view letters) {
    return letters.find(static_cast<char>(letter)) != std::string_view::npos;
  };
  if (is_in(" .,:;'|!ijl")) return 0.33;
  if (is_in("frtI()[]/\\-")) return 0.42;
  if (is_in("mwMW@%")) return 0.95;
  return letter >= 'A' && letter <= 'Z' ? 0.72 : 0.62;
}

}  // namespace

std::string pixels(double value) {
  std::array<char, 64> text{};
  std::snprintf(text.data(), text.size(), "%.2f", value);
  std::string digits = text.data();
  while (digits.back() == '0') digits.pop_back();
  if (digits.back() == '.') digits.pop_back();
  return digits == "-0" ? "0" : digits;
}

std::string escaped(std::string_view text) {
  std::string out;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t begin = at;
    const char32_t letter = next(text, at);
    if (letter == kUnreadable) {
      out += "\xEF\xBF\xBD";
    } else if (letter < 0x20 || letter == 0x7F) {
      out += ' ';
    } else if (letter == '&') {
      out += "&amp;";
    } else if (letter == '<') {
      out += "&lt;";
    } else if (letter == '>') {
      out += "&gt;";
    } else if (letter == '"') {
      out += "&quot;";
    } else {
      out += text.substr(begin, at - begin);
    }
  }
  return out;
}

double text_width(std::string_view text, double size) {
  double width = 0;
  for (std::size_t at = 0; at < text.size();) width += width_of(next(text, at));
  return width * size;
}

std::vector<std::string> wrapped(std::string_view text, double width, double size) {
  std::vector<std::string> lines;
  std::size_t begin = 0;
  while (begin < text.size()) {
    std::size_t space = begin;  // the last one at which the line may end
    std::size_t end = begin;
    double used = 0;
    for (std::size_t at = begin; at < text.size();) {
      const bool is_space = text[at] == ' ';
      if (is_space) space = at;
      used += width_of(next(text, at)) * size;
      const bool fits = used <= width + kRounding || end == begin || is_space;
      if (!fits) break;
      end = at;
    }
    if (end < text.size() && space > begin) end = space;
    std::string_view line = text.substr(begin, end - begin);
    line = line.substr(0, line.find_last_not_of(' ') + 1);
    lines.emplace_back(line);
    begin = std::min(text.find_first_not_of(' ', end), text.size());
  }
  return lines;
}

std::string text_at(double x, double y, std::string_view style, std::string_view words) {
  return "<text" + attribute("x", x) + attribute("y", y) + " class=\"" + std::string(style) +
         "\">" + std::string(words) + "</text>\n";
}

std::string attribute(std::string_view name, double value) {
  return " " + std::string(name) + "=\"" + pixels(value) + "\"";
}

}  // namespace gossamer::drawing
