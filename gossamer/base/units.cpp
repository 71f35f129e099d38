#include "gossamer/base/units.h"

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

std::string quoted(std::string_view text) { return "'" + std::string(text) + "'"; }

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

/// number · factor of the unit that `text` names.
double parse_quantity(std::string_view text, std::string_view place, std::string_view kind,
                      std::string_view example, std::span<const Unit> units) {
  double number = 0;
  std::string_view name;
  if (!split_number(text, number, name)) {
    fail_argument({.place = place,
                   .what = kind,
                   .got = quoted(text),
                   .remedy = "write a number and a unit, e.g. " + std::string(example)});
  }
  for (const Unit& unit : units) {
    if (unit.name == name) return number * unit.factor;
  }
  std::vector<std::string_view> names;
  for (const Unit& unit : units) names.push_back(unit.name);
  fail_unknown_name(place, "unit in " + quoted(text), name, names);
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
  return parse_quantity(text, place, "not a rate", "20Mbit/s, 1.5GB/s or unlimited", kRates);
}

double parse_duration(std::string_view text, std::string_view place) {
  return parse_quantity(text, place, "not a duration", "200us, 1ms or 2s", kDurations);
}

std::int64_t parse_bytes(std::string_view text, std::string_view place) {
  const double bytes = parse_quantity(text, place, "not a size", "8MB or 4MiB", kSizes);
  // 1.1 · 1e6 is not whole in binary although 1.1MB is: accept what is whole to 12 digits.
  const double whole = std::round(bytes);
  if (std::abs(bytes - whole) > 1e-12 * bytes || whole >= 0x1p63) {
    fail_argument({place, "a size must be a whole number of bytes below 2^63", quoted(text)});
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
