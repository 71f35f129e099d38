#pragma once
/// Curves and points as SVG, and figures as one page of HTML: plain values in, a text out.

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace gossamer {

/// A point without a finite place (on a log axis: without a positive one) is left out: the line has
/// a gap there. A long series is thinned to some 400 points per line: the ends and, of every short
/// piece of the x axis, the lowest and the highest.
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

/// One picture of its own, 640 × 420 (higher where many words need it), or as wide as there is room
/// for; the same bytes for the same chart. Light or dark as its reader wants it. No word is cut.
/// Twelve looks are told apart; more series begin again with the first. std::invalid_argument where
/// x, y, low and high differ in length.
std::string to_svg(const Chart& chart);

/// One picture per chart, for a page that arranges them; a name has the same colour in all.
std::vector<std::string> to_svgs(std::span<const Chart> charts);

/// Several charts side by side, at most `columns` per row, in one SVG. A name has the same colour
/// in all of them, and one legend stands below where all have the same names. `title` may be empty.
std::string to_svg(std::string_view title, std::span<const Chart> charts, int columns = 2);

/// What stands under one heading of a page; charts or rows may be missing.
struct Figure {
  std::string name;  ///< the anchor: page.html#name
  std::string title;
  std::string text;  ///< paragraphs, apart by an empty line
  std::vector<Chart> charts;
  std::vector<std::string> header;
  std::vector<std::vector<std::string>> rows;
  int columns = 2;  ///< charts per row
};

/// One file that needs no other: contents, then the figures one under another.
std::string to_html(std::string_view title, std::span<const Figure> figures);

}  // namespace gossamer
