#include "gossamer/base/units.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <span>
#include <vector>

#include "gossamer/base/errors.h"

namespace gossamer {
namespace {

struct Unit {
  std::string_view name;
  double factor;
};

constexpr double kKi = 1024;

constexpr Unit kRates[] = {
    {"bit/s", 1e0 / 8},
    {"kbit/s", 1e3 / 8},
    {"Mbit/s", 1e6 / 8},
    {"Gbit/s", 1e9 / 8},
    {"Tbit/s", 1e12 / 8},
    {"B/s", 1},
    {"kB/s", 1e3},
    {"MB/s", 1e6},
    {"GB/s", 1e9},
    {"TB/s", 1e12},
    {"KiB/s", kKi},
    {"MiB/s", kKi* kKi},
    {"GiB/s", kKi* kKi* kKi},
};
constexpr Unit kDurations[] = {{"ns", 1e-9}, {"us", 1e-6},  {"ms", 1e-3},
                               {"s", 1},     {"min", 60.0}, {"h", 3600.0}};
constexpr Unit kSizes[] = {
    {"B", 1},
    {"kB", 1e3},
    {"MB", 1e6},
    {"GB", 1e9},
    {"TB", 1e12},
    {"KiB", kKi},
    {"MiB", kKi* kKi},
    {"GiB", kKi* kKi* kKi},
    {"TiB", kKi* kKi* kKi* kKi},
};

// In rising order: what the formatters choose from.
constexpr Unit kBitRates[] = {{"bit/s", 1e0 / 8},
                              {"kbit/s", 1e3 / 8},
                              {"Mbit/s", 1e6 / 8},
                              {"Gbit/s", 1e9 / 8},
                              {"Tbit/s", 1e12 / 8}};
constexpr Unit kDecimalSizes[] = {{"B", 1}, {"kB", 1e3}, {"MB", 1e6}, {"GB", 1e9}, {"TB", 1e12}};
constexpr Unit kShortDurations[] = {{"ns", 1e-9}, {"us", 1e-6}, {"ms", 1e-3}, {"s", 1}};

std::string in_quotes(std::string_view text) { return "'" + std::string(text) + "'"; }

/// Splits "1.5 GB/s" into the number and the unit; the unit is empty where there is none.
bool split_number(std::string_view text, double& number, std::string_view& unit) {
  // from_chars would also take a sign, "inf" and "nan".
  if (text.empty() || (text[0] != '.' && (text[0] < '0' || text[0] > '9'))) return false;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc()) return false;
  unit = text.substr(static_cast<std::size_t>(end - text.data()));
  while (!unit.empty() && unit.front() == ' ') unit.remove_prefix(1);
  return true;
}

/// What a unit is written like elsewhere, after its prefix: the quantity stays the same.
struct Spelling {
  std::string_view written;
  std::string_view unit;
};

constexpr Spelling kRateSpellings[] = {
    {"bps", "bit/s"},   {"b/s", "bit/s"},    {"b", "bit/s"},       {"bit", "bit/s"},
    {"bits", "bit/s"},  {"bits/s", "bit/s"}, {"bit/sec", "bit/s"}, {"Bit/s", "bit/s"},
    {"bit/s", "bit/s"}, {"B/s", "B/s"},      {"BIT/S", "bit/s"},   {"Bps", "B/s"},
    {"B", "B/s"},       {"B/sec", "B/s"},    {"byte/s", "B/s"},    {"bytes/s", "B/s"}};
constexpr Spelling kDurationSpellings[] = {
    {"sec", "s"},       {"secs", "s"}, {"second", "s"}, {"seconds", "s"}, {"S", "s"},
    {"µs", "us"},       {"μs", "us"},  {"m", "min"},    {"mins", "min"},  {"minute", "min"},
    {"minutes", "min"}, {"hr", "h"},   {"hrs", "h"},    {"hour", "h"},    {"hours", "h"}};
constexpr Spelling kSizeSpellings[] = {{"b", "B"},     {"", "B"},     {"byte", "B"},
                                       {"bytes", "B"}, {"Byte", "B"}, {"Bytes", "B"}};

/// A kind of quantity: what it is called, how it is written, and with which units.
struct Quantity {
  std::string_view kind;
  std::string_view example;
  std::span<const Unit> units;
  std::span<const Spelling> spellings;
};

bool has_unit(const Quantity& quantity, std::string_view name) {
  const auto is_it = [&](const Unit& unit) { return unit.name == name; };
  return std::ranges::any_of(quantity.units, is_it);
}

/// "g" → "G" and "K" → "k": prefixes that differ by their case only mean the same.
std::string usual_prefix(std::string_view prefix) {
  std::string usual(prefix);
  if (usual == "K") return "k";
  const bool is_large = usual == "m" || usual == "g" || usual == "t" || usual == "ki" ||
                        usual == "mi" || usual == "gi" || usual == "ti";
  if (is_large) usual[0] = static_cast<char>(usual[0] - 'a' + 'A');
  return usual;
}

/// The unit that is meant; empty where that cannot be said.
std::string meant_unit(const Quantity& quantity, std::string_view name) {
  std::string with_prefix;
  for (const auto& [written, unit] : quantity.spellings) {
    if (name == written) return std::string(unit);
    const bool ends_so = name.ends_with(written) && name.size() - written.size() <= 2;
    if (!ends_so) continue;
    const std::string_view prefix = name.substr(0, name.size() - written.size());
    for (const std::string& each : {std::string(prefix), usual_prefix(prefix)}) {
      const std::string whole = each + std::string(unit);
      if (with_prefix.empty() && has_unit(quantity, whole)) with_prefix = whole;
    }
  }
  if (!with_prefix.empty()) return with_prefix;
  std::vector<std::string_view> alike;  // bits for bits, bytes for bytes
  const bool says_bytes = name.find('B') != name.npos;
  const bool says_bits = !says_bytes && name.find('b') != name.npos;
  for (const Unit& unit : quantity.units) {
    const bool has_bytes = unit.name.find('B') != unit.name.npos;
    if ((says_bytes && !has_bytes) || (says_bits && has_bytes)) continue;
    alike.push_back(unit.name);
  }
  return nearest_name(name, alike);
}

[[noreturn]] void refuse_unit(const Quantity& quantity, std::string_view place,
                              std::string_view text, std::string_view name) {
  if (name.empty()) {
    fail_argument({.place = place,
                   .what = "the unit is missing",
                   .got = in_quotes(text),
                   .remedy = "write a number and a unit, e.g. " + std::string(quantity.example)});
  }
  std::string names;
  for (const Unit& unit : quantity.units) {
    names += (names.empty() ? "" : ", ") + std::string(unit.name);
  }
  const std::string meant = meant_unit(quantity, name);
  const std::string number(text.substr(0, text.size() - name.size()));
  const std::string hint = meant.empty() ? "" : "did you mean " + in_quotes(number + meant) + "? ";
  fail_argument({.place = place,
                 .what = "unknown unit in " + in_quotes(text),
                 .got = in_quotes(name),
                 .remedy = hint + "valid: " + names});
}

/// number · factor of the unit that `text` names.
double parse_quantity(std::string_view text, std::string_view place, const Quantity& quantity) {
  double number = 0;
  std::string_view name;
  if (!split_number(text, number, name)) {
    fail_argument({.place = place,
                   .what = "not a " + std::string(quantity.kind),
                   .got = in_quotes(text),
                   .remedy = "write a number and a unit, e.g. " + std::string(quantity.example)});
  }
  for (const Unit& unit : quantity.units) {
    if (unit.name != name) continue;
    if (std::isfinite(number * unit.factor)) return number * unit.factor;
    fail_argument({.place = place,
                   .what = "the " + std::string(quantity.kind) + " is too large",
                   .got = in_quotes(text),
                   .remedy = "write a smaller number"});
  }
  refuse_unit(quantity, place, text, name);
}

double three_digits(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.2e", value);
  return std::strtod(text, nullptr);
}

/// With the largest unit that leaves at least 1 before the point.
std::string format_quantity(double value, std::span<const Unit> units) {
  const Unit* chosen = &units.front();
  for (const Unit& unit : units) {
    if (three_digits(std::abs(value) / unit.factor) >= 1) chosen = &unit;
  }
  char number[32];
  std::snprintf(number, sizeof number, "%.10g", three_digits(value / chosen->factor));
  return std::string(number) + " " + std::string(chosen->name);
}

std::string two_units(std::int64_t count, std::int64_t per, const char* large, const char* small) {
  std::string text = std::to_string(count / per) + large;
  if (count % per != 0) text += " " + std::to_string(count % per) + small;
  return text;
}

}  // namespace

double parse_rate(std::string_view text, std::string_view place) {
  if (text == "unlimited") return std::numeric_limits<double>::infinity();
  return parse_quantity(text, place,
                        {"rate", "20Mbit/s, 1.5GB/s or unlimited", kRates, kRateSpellings});
}

double parse_duration(std::string_view text, std::string_view place) {
  return parse_quantity(text, place,
                        {"duration", "200us, 1ms or 2s", kDurations, kDurationSpellings});
}

std::int64_t parse_bytes(std::string_view text, std::string_view place) {
  const double bytes = parse_quantity(text, place, {"size", "8MB or 4MiB", kSizes, kSizeSpellings});
  // 1.1 · 1e6 is not whole in binary although 1.1MB is: accept what is whole to 12 digits.
  const double whole = std::round(bytes);
  if (std::abs(bytes - whole) > 1e-12 * bytes || whole >= 0x1p63) {
    fail_argument({place, "a size must be a whole number of bytes below 2^63", in_quotes(text)});
  }
  return static_cast<std::int64_t>(whole);
}

std::string shortest(double value) {
  char text[32];
  return {text, std::to_chars(text, text + sizeof text, value).ptr};
}

std::string format_bytes(double bytes) { return format_quantity(bytes, kDecimalSizes); }

std::string format_rate(double bytes_per_s) {
  return std::isinf(bytes_per_s) ? "unlimited" : format_quantity(bytes_per_s, kBitRates);
}

std::string format_duration(double seconds) {
  if (seconds == 0) return "0 s";
  if (seconds < 120) return format_quantity(seconds, kShortDurations);
  if (seconds < 3600) return two_units(std::llround(seconds), 60, " min", " s");
  return two_units(std::llround(seconds / 60), 60, " h", " min");
}

}  // namespace gossamer
