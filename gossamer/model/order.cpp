#include "gossamer/model/order.h"

#include <cmath>
#include <string_view>

#include "gossamer/base/errors.h"

namespace gossamer {
namespace {

constexpr std::string_view kSymbolTexts[kSymbols] = {"sigma",   "b", "rho", "(1 - rho)",
                                                     "log2(n)", "n", "H",   "T"};

/// "", "^3" or "^(2/3)".
std::string exponent_text(double power) {
  for (const int divisor : {1, 2, 3}) {
    const double whole = std::round(power * divisor);
    if (std::abs(power * divisor - whole) > 1e-9) continue;
    if (divisor == 1 && whole == 1) return "";
    const std::string count = std::to_string(static_cast<int>(whole));
    return divisor == 1 ? "^" + count : "^(" + count + "/" + std::to_string(divisor) + ")";
  }
  GOSSAMER_ASSERT(!"a multiple of a half or a third");
  return "";
}

/// One side of the fraction; `count` becomes how many words it is.
std::string side_text(std::span<const Factor> factors, double sign, int& count) {
  std::string roots;
  std::string others;
  count = 0;
  for (const Factor& factor : factors) {
    const double power = sign * factor.power;
    if (power <= 0) continue;
    const std::string_view name = kSymbolTexts[static_cast<std::size_t>(factor.symbol)];
    const bool is_root = power == 0.5;
    std::string& text = is_root ? roots : others;
    count += !is_root || text.empty();
    text += (text.empty() ? "" : " ") + std::string(name) + (is_root ? "" : exponent_text(power));
  }
  if (roots.empty()) return others;
  return "sqrt(" + roots + ")" + (others.empty() ? "" : " " + others);
}

}  // namespace

std::string product_text(std::span<const Factor> factors) {
  int words = 0;
  std::string above = side_text(factors, 1, words);
  if (words == 0) above = "1";
  const std::string below = side_text(factors, -1, words);
  if (words == 0) return above;
  return above + "/" + (words == 1 ? below : "(" + below + ")");
}

double product_value(std::span<const Factor> factors, const SymbolValues& values) {
  double above = 1;
  double below = 1;
  for (const Factor& factor : factors) {
    const double value = values[static_cast<std::size_t>(factor.symbol)];
    if (factor.power > 0) above *= std::pow(value, factor.power);
    if (factor.power < 0) below *= std::pow(value, -factor.power);
  }
  return above / below;
}

}  // namespace gossamer
