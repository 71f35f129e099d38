#include "gossamer/lab/chart_axis.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>

#include "gossamer/lab/chart_text.h"

namespace gossamer::drawing {
namespace {

constexpr double kHuge = 1e300;   // beyond it differences overflow
constexpr double kTiny = 1e-290;  // below it powers of ten do
constexpr double kExact = 1e-9;   // relative to a step: what rounding may move a tick
constexpr double kMargin = 0.03;

double power_of_ten(int exponent) { return std::pow(10.0, exponent); }

/// k · 10^exponent with one rounding as long as the power is exact.
double decimal(double k, int exponent) {
  return exponent < 0 ? k / power_of_ten(-exponent) : k * power_of_ten(exponent);
}

int exponent_of(double value) {
  return static_cast<int>(std::floor(std::log10(std::abs(value)) + kExact));
}

/// With digits in groups of three and a true minus.
std::string number(double value, int decimals) {
  std::array<char, 64> text{};
  std::snprintf(text.data(), text.size(), "%.*f", decimals, std::abs(value));
  std::string digits = text.data();
  const std::size_t whole = std::min(digits.find('.'), digits.size());
  for (std::size_t k = whole; k > 3; k -= 3) digits.insert(k - 3, "\u202F");
  const bool zero = digits.find_first_of("123456789") == std::string::npos;
  return value < 0 && !zero ? "−" + digits : digits;
}

int decimals_of(double value) {
  for (int decimals = 0; decimals < 9; ++decimals) {
    const double scaled = std::abs(decimal(value, decimals));
    if (std::abs(scaled - std::round(scaled)) < 1e-7 + 1e-13 * scaled) return decimals;
  }
  return 9;
}

int decimals_of(const std::vector<double>& values) {
  int most = 0;
  for (double value : values) most = std::max(most, decimals_of(value));
  return most;
}

std::string abbreviated(double value) {
  constexpr std::array<const char*, 5> kSuffix{"", "k", "M", "G", "T"};
  const int thousands = value == 0 ? 0 : std::clamp(exponent_of(value) / 3, 0, 4);
  const double scaled = value / power_of_ten(3 * thousands);
  return number(scaled, decimals_of(scaled)) + kSuffix[static_cast<std::size_t>(thousands)];
}

double largest_of(const std::vector<double>& values) {
  double largest = 0;
  for (double value : values) largest = std::max(largest, std::abs(value));
  return largest;
}

/// "3×10^5" with one exponent for all, so that the eye compares the numbers before it.
std::vector<Tick> scientific(const std::vector<double>& values, int exponent) {
  std::vector<double> mantissas;
  for (double value : values) mantissas.push_back(decimal(value, -exponent));
  const int decimals = decimals_of(mantissas);
  std::vector<Tick> ticks;
  for (std::size_t k = 0; k < values.size(); ++k) {
    const Tick zero{.value = 0, .base = "0"};
    ticks.push_back(values[k] == 0 ? zero
                                   : Tick{.value = values[k],
                                          .base = number(mantissas[k], decimals) + "×10",
                                          .exponent = number(exponent, 0)});
  }
  return ticks;
}

Tick power(double value) {
  const int exponent = exponent_of(value);
  const double mantissa = decimal(value, -exponent);
  const bool one = std::abs(mantissa - 1) < 1e-6;
  return {.value = value,
          .base = one ? "10" : number(mantissa, decimals_of(mantissa)) + "×10",
          .exponent = number(exponent, 0)};
}

/// The multiples of 10^every in the range, each times all of `factors`.
std::vector<double> log_ticks(Interval range, int every, const std::vector<int>& factors) {
  std::vector<double> values;
  const double slack = kExact * (range.high - range.low);
  const auto first = static_cast<int>(std::floor(range.low / every)) * every;
  for (int decade = first; decade <= range.high + slack; decade += every) {
    for (int factor : factors) {
      const double place = decade + std::log10(factor);
      const double value = decimal(factor, decade);
      const bool inside = place >= range.low - slack && place <= range.high + slack;
      if (inside && has_place(value, true)) values.push_back(value);
    }
  }
  return values;
}

/// Sets of ticks for a scale, the richest first.
std::vector<std::vector<double>> candidates(const Scale& scale) {
  std::vector<std::vector<double>> sets;
  const double span = scale.range.high - scale.range.low;
  const auto most = static_cast<int>(scale.length() / (scale.vertical ? 44 : 64));
  Interval values = scale.range;
  if (scale.log) {
    if (span < 2) sets.push_back(log_ticks(scale.range, 1, {1, 2, 5}));
    if (span >= 2 || log_ticks(scale.range, 1, {1}).size() > 1) {
      for (int every : {1, 2, 3, 5, 10, 20, 50, 100, 200}) {
        sets.push_back(log_ticks(scale.range, every, {1}));
      }
      return sets;
    }
    if (sets.front().size() < 3) sets.clear();
    values = {std::pow(10.0, values.low), std::pow(10.0, values.high)};
  }
  for (int count = std::max(most, 2); count >= 2; --count) {
    sets.push_back(linear_ticks(values, count));
  }
  return sets;
}

bool labels_touch(const Scale& scale, const Tick& a, const Tick& b) {
  const double apart = std::abs(scale.at(a.value) - scale.at(b.value));
  const double widths = (width_of(a) + width_of(b)) / 2;
  return apart < (scale.vertical ? kTickSize + 9 : widths + 12);
}

/// From the first on, those that do not touch the one before.
std::vector<Tick> apart(const Scale& scale, const std::vector<Tick>& ticks) {
  std::vector<Tick> kept;
  for (const Tick& tick : ticks) {
    if (kept.empty() || !labels_touch(scale, kept.back(), tick)) kept.push_back(tick);
  }
  return kept;
}

}  // namespace

void Interval::take(double value) {
  low = std::min(low, value);
  high = std::max(high, value);
}

bool has_place(double value, bool log) {
  return std::isfinite(value) && std::abs(value) <= kHuge && (!log || value > 0);
}

double along(double value, bool log) { return log ? std::log10(value) : value; }

Interval shown_range(Interval data, bool log) {
  if (data.empty()) return {0, 1};
  const double margin = kMargin * (data.high - data.low);
  if (log) {
    if (data.high - data.low < 1e-6) return {data.low - 0.5, data.high + 0.5};
    return {data.low - margin, data.high + margin};
  }
  const double largest = std::max(std::abs(data.low), std::abs(data.high));
  if (largest < kTiny) return {-1, 1};
  // Below a millionth the labels would need more digits than fit.
  if (data.high - data.low < 1e-6 * largest) {
    return {data.low - 0.1 * largest, data.high + 0.1 * largest};
  }
  const bool from_zero = data.low >= 0 && data.low <= 0.2 * data.high;
  const bool to_zero = data.high <= 0 && data.high >= 0.2 * data.low;
  return {from_zero ? 0 : data.low - margin, to_zero ? 0 : data.high + margin};
}

double Scale::at(double value) const {
  const double fraction = (along(value, log) - range.low) / (range.high - range.low);
  return start + fraction * (end - start);
}

double Scale::length() const { return std::abs(end - start); }

std::vector<double> linear_ticks(Interval range, int most) {
  const int exponent = exponent_of((range.high - range.low) / most);
  std::vector<double> values;
  for (int factor : {1, 2, 5, 10, 20}) {
    const double step = decimal(factor, exponent);
    const double first = std::ceil(range.low / step - kExact);
    const double last = std::floor(range.high / step + kExact);
    if (last - first + 1 > most) continue;
    for (double k = first; k <= last; ++k) values.push_back(decimal(k * factor, exponent));
    break;
  }
  return values;
}

std::vector<Tick> labelled(const std::vector<double>& values, bool log) {
  const double largest = largest_of(values);
  if (largest == 0) return {values.size(), Tick{.value = 0, .base = "0"}};
  std::vector<Tick> ticks;
  if (log && (values.front() < 0.09 || largest > 1.1e4)) {
    for (double value : values) ticks.push_back(power(value));
    return ticks;
  }
  if (largest >= 1e13 || largest < 1e-3) return scientific(values, exponent_of(largest));
  const int decimals = decimals_of(values);
  for (double value : values) {
    const int own = log || value == 0 ? decimals_of(value) : decimals;
    ticks.push_back(
        {.value = value, .base = largest < 1e4 ? number(value, own) : abbreviated(value)});
  }
  return ticks;
}

std::vector<Tick> ticks_of(const Scale& scale) {
  std::vector<Tick> ticks;
  for (const std::vector<double>& values : candidates(scale)) {
    ticks = labelled(values, scale.log);
    if (apart(scale, ticks).size() == ticks.size()) break;
  }
  return apart(scale, ticks);
}

std::vector<double> minor_ticks(const Scale& scale) {
  if (!scale.log) return {};
  const double decade = scale.length() / (scale.range.high - scale.range.low);
  if (decade < 5) return {};
  return decade < 30 ? log_ticks(scale.range, 1, {1})
                     : log_ticks(scale.range, 1, {1, 2, 3, 4, 5, 6, 7, 8, 9});
}

double width_of(const Tick& tick) {
  return text_width(tick.base, kTickSize) + text_width(tick.exponent, 0.75 * kTickSize);
}

}  // namespace gossamer::drawing
