#pragma once
/// One series inside a chart: its colour, dashes and marker, its line, band and points.

#include <string>

#include "gossamer/lab/chart.h"
#include "gossamer/lab/chart_axis.h"

namespace gossamer::drawing {

/// How a series is told from the others, also in grey and by people who see fewer colours.
struct Look {
  std::string colour;
  std::string dash;     ///< of stroke-dasharray; empty: solid
  std::string marker;   ///< relative path commands from the marker's middle
  bool hollow = false;  ///< the marker
  double offset = 0;    ///< where along a line its first marker stands, 0 to 1 of a spacing
  bool sparse = false;  ///< markers along a long line, too
};

/// The look of the series at `place` among `total` colours.
Look look_of(std::size_t place, std::size_t total, const Series& series);

/// The pixels that a chart draws on.
struct Plot {
  Scale x, y;
};

/// Its band or error bars; to be drawn below all lines.
std::string draw_spread(const Series& series, const Look& look, const Plot& plot);

/// Its line and markers as one group with its name.
std::string draw_series(const Series& series, const Look& look, const Plot& plot);

/// The same in a legend, 26 wide, around that height.
std::string draw_swatch(const Series& series, const Look& look, double x, double y);

constexpr double kSwatch = 26;

}  // namespace gossamer::drawing
