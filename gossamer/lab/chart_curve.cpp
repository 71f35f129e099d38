#include "gossamer/lab/chart_curve.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <limits>
#include <vector>

#include "gossamer/lab/chart_text.h"

namespace gossamer::drawing {
namespace {

constexpr std::size_t kMostPoints = 400;
constexpr std::size_t kFewPoints = 16;
constexpr double kMarkerSpacing = 72;
constexpr std::size_t kMostSolid = 1;  // of more, markers tell one from another, too
constexpr std::size_t kGap = std::numeric_limits<std::size_t>::max();

// Far apart in lightness and for each of the three kinds of colour blindness.
constexpr std::array<const char*, 6> kColours{"#1453a0", "#d5561a", "#1fa67f",
                                              "#93447a", "#1e293b", "#e0a316"};
constexpr std::array<const char*, 6> kMarkers{
    "m-3.5 0a3.5 3.5 0 1 0 7 0a3.5 3.5 0 1 0 -7 0z",                  // circle
    "m-3.2 -3.2h6.4v6.4h-6.4z",                                       // square
    "m0 -4.2l4.2 7.2h-8.4z",                                          // triangle
    "m0 -4.6l4.6 4.6l-4.6 4.6l-4.6 -4.6z",                            // diamond
    "m0 4.2l4.2 -7.2h-8.4z",                                          // triangle, downwards
    "m-1.4 -4.2h2.8v2.8h2.8v2.8h-2.8v2.8h-2.8v-2.8h-2.8v-2.8h2.8z"};  // plus

/// Indices of a series in their order; kGap where the line breaks.
using Indices = std::vector<std::size_t>;

bool has_point(const Series& series, const Plot& plot, std::size_t k) {
  return has_place(series.x[k], plot.x.log) && has_place(series.y[k], plot.y.log);
}

/// Which of the pieces of the x axis the point belongs to; pieces are equally long on the picture,
/// and of equally many points where x goes back and forth.
std::vector<std::size_t> pieces_of(const Series& series, const Scale& x, std::size_t pieces) {
  const std::size_t count = series.x.size();
  std::vector<std::size_t> out(count);
  const bool in_order = std::is_sorted(series.x.begin(), series.x.end()) &&
                        has_place(series.x.front(), false) && has_place(series.x.back(), false);
  double fraction = 0;
  for (std::size_t k = 0; k < count; ++k) {
    if (!in_order) {
      fraction = static_cast<double>(k) / static_cast<double>(count);
    } else if (has_place(series.x[k], x.log)) {
      fraction = (x.at(series.x[k]) - x.start) / (x.end - x.start);
    }
    const double piece = std::floor(fraction * static_cast<double>(pieces));
    out[k] = static_cast<std::size_t>(std::clamp(piece, 0.0, static_cast<double>(pieces - 1)));
  }
  return out;
}

/// All points of a short series. Of a long one the first, the last, and the lowest and highest of
/// each piece; a gap remains where a whole piece is missing.
Indices thinned(const Series& series, const Plot& plot) {
  Indices out;
  Indices points;
  for (std::size_t k = 0; k < series.x.size(); ++k) {
    const bool there = has_point(series, plot, k);
    if (there) points.push_back(k);
    out.push_back(there ? k : kGap);
  }
  if (out.size() <= kMostPoints) return out;
  out.clear();
  if (points.empty()) return out;
  const std::vector<std::size_t> pieces = pieces_of(series, plot.x, kMostPoints / 2 - 1);
  const auto lower = [&](std::size_t a, std::size_t b) { return series.y[a] < series.y[b]; };
  const auto add = [&](std::size_t k) {
    if (out.empty() || out.back() != k) out.push_back(k);
  };
  add(points.front());
  std::size_t k = 0;
  while (k < series.x.size()) {
    const std::size_t begin = k;
    while (k < series.x.size() && pieces[k] == pieces[begin]) ++k;
    const auto first = std::lower_bound(points.begin(), points.end(), begin);
    const auto last = std::lower_bound(first, points.end(), k);
    if (first == last) {
      add(kGap);
    } else {
      const auto [low, high] = std::minmax_element(first, last, lower);
      add(std::min(*low, *high));
      add(std::max(*low, *high));
    }
  }
  add(points.back());
  return out;
}

/// The pieces between gaps.
std::vector<Indices> runs_of(const Indices& indices) {
  std::vector<Indices> runs(1);
  for (std::size_t k : indices) {
    if (k != kGap) {
      runs.back().push_back(k);
    } else if (!runs.back().empty()) {
      runs.emplace_back();
    }
  }
  if (runs.back().empty()) runs.pop_back();
  return runs;
}

std::string point(double x, double y) { return pixels(x) + " " + pixels(y); }

std::string line_of(const Series& series, const Plot& plot, const std::vector<Indices>& runs) {
  std::string path;
  for (const Indices& run : runs) {
    if (run.size() < 2) continue;  // draw_markers shows a point alone
    char command = 'M';
    for (std::size_t k : run) {
      path += command + point(plot.x.at(series.x[k]), plot.y.at(series.y[k]));
      command = 'L';
    }
  }
  return path;
}

/// A bound of a band on the picture; what lies beyond its edges, on them.
double bound_at(const Plot& plot, double value) {
  if (plot.y.log && value <= 0) return plot.y.start;
  const double place = plot.y.at(std::clamp(value, -1e300, 1e300));
  return std::clamp(place, std::min(plot.y.start, plot.y.end), std::max(plot.y.start, plot.y.end));
}

bool has_band(const Series& series, const Plot& plot, std::size_t k) {
  const bool above = !std::isnan(series.low[k]) && has_place(series.high[k], plot.y.log);
  return above && has_place(series.x[k], plot.x.log);
}

std::string band_of(const Series& series, const Plot& plot, const Indices& indices) {
  Indices there;
  for (std::size_t k : indices) there.push_back(k != kGap && has_band(series, plot, k) ? k : kGap);
  std::string path;
  for (const Indices& run : runs_of(there)) {
    char command = 'M';
    for (std::size_t k : run) {
      path += command + point(plot.x.at(series.x[k]), bound_at(plot, series.high[k]));
      command = 'L';
    }
    for (auto k = run.rbegin(); k != run.rend(); ++k) {
      path += "L" + point(plot.x.at(series.x[*k]), bound_at(plot, series.low[*k]));
    }
    path += "Z";
  }
  return path;
}

std::string error_bars(const Series& series, const Plot& plot, const Indices& indices) {
  std::string path;
  for (std::size_t k : indices) {
    if (k == kGap || !has_band(series, plot, k)) continue;
    const double x = plot.x.at(series.x[k]);
    for (double bound : {series.low[k], series.high[k]}) {
      path += "M" + point(x - 3, bound_at(plot, bound)) + "h6";
    }
    path += "M" + point(x, bound_at(plot, series.low[k])) + "V" +
            pixels(bound_at(plot, series.high[k]));
  }
  return path;
}

/// Few points are measurements, each to be seen; a dashed line is a reference.
bool is_marked_all_along(const Series& series) {
  return !series.dashed && series.x.size() <= kFewPoints;
}

/// The points that have a marker: all of a few, points alone, and some along a line.
Indices marked(const Series& series, const Look& look, const Plot& plot,
               const std::vector<Indices>& runs) {
  Indices all;
  for (const Indices& run : runs) all.insert(all.end(), run.begin(), run.end());
  if (series.points || is_marked_all_along(series)) return all;
  Indices out;
  double wanted = plot.x.start + look.offset * kMarkerSpacing;
  for (const Indices& run : runs) {
    for (std::size_t k : run) {
      const double x = plot.x.at(series.x[k]);
      const bool along_line = look.sparse && x >= wanted;
      if (along_line) wanted += kMarkerSpacing * std::floor((x - wanted) / kMarkerSpacing + 1);
      if (along_line || run.size() == 1) out.push_back(k);
    }
  }
  return out;
}

std::string path_element(const std::string& data, const std::string& style) {
  return data.empty() ? "" : "<path d=\"" + data + "\" " + style + "/>\n";
}

std::string stroke(const Look& look, double width) {
  const std::string dash = look.dash.empty() ? "" : " stroke-dasharray=\"" + look.dash + "\"";
  return "fill=\"none\" stroke=\"" + look.colour + "\" stroke-width=\"" + pixels(width) +
         "\" stroke-linejoin=\"round\"" + dash;
}

std::string marker_style(const Look& look) {
  if (look.hollow) {
    return "fill=\"#ffffff\" stroke=\"" + look.colour + "\" stroke-width=\"1.5\"";
  }
  return "fill=\"" + look.colour + "\" stroke=\"#ffffff\" stroke-width=\"0.8\"";
}

std::string band_style(const Look& look) {
  return "fill=\"" + look.colour + "\" fill-opacity=\"0.16\"";
}

}  // namespace

Look look_of(std::size_t place, std::size_t total, const Series& series) {
  const bool many = total > kMostSolid;
  const bool again = (place / kColours.size()) % 2 == 1;
  Look look{.colour = kColours[place % kColours.size()],
            .marker = kMarkers[place % kMarkers.size()],
            .hollow = again,
            .offset = std::fmod(0.5 + 0.382 * static_cast<double>(place), 1.0),
            .sparse = many && series.like.empty()};
  if (series.dashed) look.dash = again ? "2 3" : "7 4";
  if (!series.dashed && again) look.dash = "12 3 3 3";
  return look;
}

std::string draw_spread(const Series& series, const Look& look, const Plot& plot) {
  if (series.low.empty()) return "";
  const Indices indices = thinned(series, plot);
  if (!series.points) return path_element(band_of(series, plot, indices), band_style(look));
  return path_element(error_bars(series, plot, indices), stroke({.colour = look.colour}, 1.2));
}

std::string draw_series(const Series& series, const Look& look, const Plot& plot) {
  const std::vector<Indices> runs = runs_of(thinned(series, plot));
  std::string out = "<g class=\"series\">";
  if (!series.name.empty()) out += "<title>" + escaped(series.name) + "</title>";
  out += "\n";
  const double width = series.x.size() > kMostPoints ? 1.5 : 2;  // noise fills less of the picture
  if (!series.points) out += path_element(line_of(series, plot, runs), stroke(look, width));
  std::string markers;
  for (std::size_t k : marked(series, look, plot, runs)) {
    markers += "M" + point(plot.x.at(series.x[k]), plot.y.at(series.y[k])) + look.marker;
  }
  return out + path_element(markers, marker_style(look)) + "</g>\n";
}

std::string draw_swatch(const Series& series, const Look& look, double x, double y) {
  std::string out;
  const std::string across = "M" + point(x, y) + "h" + pixels(kSwatch);
  if (!series.low.empty() && !series.points) {
    const std::string box =
        "M" + point(x, y - 5) + "h" + pixels(kSwatch) + "v10h-" + pixels(kSwatch) + "z";
    out += path_element(box, band_style(look));
  }
  if (!series.points) out += path_element(across, stroke(look, 2));
  if (!series.points && !is_marked_all_along(series) && !look.sparse) return out;
  return out + path_element("M" + point(x + kSwatch / 2, y) + look.marker, marker_style(look));
}

}  // namespace gossamer::drawing
