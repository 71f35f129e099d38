#include "gossamer/cli/amount.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "gossamer/base/errors.h"

namespace gossamer {
namespace {

constexpr double kMostOfAnything = 1e13;

}  // namespace

std::int64_t parse_amount(std::string_view flag, const std::string& text,
                          const std::string& command) {
  constexpr std::pair<std::string_view, double> kUnits[] = {
      {"k", 1e3}, {"K", 1e3}, {"M", 1e6}, {"B", 1e9}, {"G", 1e9}};
  double factor = 1;
  std::string digits = text;
  for (const auto& [unit, size] : kUnits) {
    if (!digits.ends_with(unit)) continue;
    factor = size;
    digits.resize(digits.size() - unit.size());
    break;
  }
  const bool is_number = !digits.empty() && digits.size() <= 20 &&
                         digits.find_first_not_of("0123456789.") == std::string::npos &&
                         std::ranges::count(digits, '.') <= 1 && digits != ".";
  const double value = is_number ? std::round(std::stod(digits) * factor) : 0;
  if (value >= 1 && value <= kMostOfAnything) return static_cast<std::int64_t>(value);
  fail_argument({.place = command,
                 .what = std::string(flag) + " takes a number from 1 to 1e13",
                 .got = "'" + text + "'",
                 .remedy = text.ends_with("MB") || text.ends_with("GB")
                               ? "it is no number of bytes: did you mean '" +
                                     text.substr(0, text.size() - 1) + "'?"
                               : "for example 25M, 7B or 1000000"});
}

}  // namespace gossamer
