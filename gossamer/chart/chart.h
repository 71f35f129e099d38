#pragma once
/// Curves, points and tables of a figure as plain values; Python draws them.

#include <string>
#include <vector>

namespace gossamer {

/// A point without a finite place (on a log axis: without a positive one) is left out: the line has
/// a gap there.
struct Series {
  std::string name;  ///< equal names have one colour and, in one chart, one entry of the legend
  std::vector<double> x, y;
  /// A translucent band around the line, error bars where there are points only; empty: none. It
  /// widens the y axis by no more than the lines' own range, or by a decade.
  std::vector<double> low, high;
  bool points = false;  ///< markers only, no line
  bool dashed = false;
  std::string like;  ///< the name of the series whose colour this one takes; empty: one of its own
};

struct Axis {
  std::string label;
  bool log = false;
};

struct Chart {
  std::string title;
  std::string caption;  ///< below the title
  Axis x, y;
  std::vector<Series> series;
};

/// What stands under one heading of a page; charts or rows may be missing.
struct Figure {
  std::string name;  ///< of its file, and the anchor: figures.html#name
  std::string title;
  std::string text;  ///< paragraphs, apart by an empty line
  std::vector<Chart> charts;
  std::vector<std::string> header;
  std::vector<std::vector<std::string>> rows;
  int columns = 2;  ///< charts per row
};

}  // namespace gossamer
