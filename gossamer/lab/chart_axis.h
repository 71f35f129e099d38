#pragma once
/// An axis of a chart: what range it shows, where a value lies, which ticks it has.

#include <limits>
#include <string>
#include <vector>

namespace gossamer::drawing {

/// From low to high; empty where low is above high.
struct Interval {
  double low = std::numeric_limits<double>::infinity();
  double high = -std::numeric_limits<double>::infinity();
  bool empty() const { return low > high; }
  void take(double value);
};

/// Whether an axis has a place for the value: finite, below 1e300, positive on a log axis.
bool has_place(double value, bool log);

/// Where along the axis: the value, or its logarithm to base 10.
double along(double value, bool log);

/// What an axis shows of data in that interval (of `along`): a little more on both sides, from zero
/// where the data come close to it, a range around the value where there is only one.
Interval shown_range(Interval data, bool log);

/// A range on a line of pixels. A vertical one has `start` below `end`, the greater number.
struct Scale {
  bool log = false;
  Interval range;
  double start = 0;
  double end = 1;
  bool vertical = false;
  double at(double value) const;
  double length() const;
};

/// "5" or "10" with an exponent "−3" above it.
struct Tick {
  double value = 0;
  std::string base;
  std::string exponent;
};

/// The multiples of 1, 2 or 5 times a power of ten in the interval, at most `most` of them.
std::vector<double> linear_ticks(Interval range, int most);

/// Labels that tell the values apart: "0.25", "1 000", from 10 000 on "10k" and "2.5M", powers of
/// ten where they span far or lie far from one.
std::vector<Tick> labelled(const std::vector<double>& values, bool log);

/// As many as there is room for without labels that touch. On a log axis decades; 2 and 5 as well
/// where it spans less than two of them.
std::vector<Tick> ticks_of(const Scale& scale);

/// Between the labelled ticks of a log axis; none on a linear one.
std::vector<double> minor_ticks(const Scale& scale);

constexpr double kTickSize = 11.5;  ///< of the labels' font

double width_of(const Tick& tick);

}  // namespace gossamer::drawing
