#include "gossamer/lab/chart.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "gossamer/lab/chart_axis.h"
#include "gossamer/lab/chart_curve.h"
#include "gossamer/lab/chart_legend.h"
#include "gossamer/lab/chart_style.h"
#include "gossamer/lab/chart_text.h"

namespace gossamer {
namespace {

using drawing::attribute;
using drawing::escaped;
using drawing::Interval;
using drawing::Legend;
using drawing::Looks;
using drawing::pixels;
using drawing::Plot;
using drawing::Scale;
using drawing::text_at;
using drawing::Tick;

constexpr double kWidth = 640;
constexpr double kHeight = 420;
constexpr double kPad = 20;
constexpr double kGap = 20;
constexpr double kOutside = 24;
constexpr double kHeading = 44;
constexpr double kHeadingSize = 22;
constexpr double kHeadingLine = 28;
constexpr double kTitleSize = 15;
constexpr double kTitleLine = 20;
constexpr double kBold = 1.12;  // how much wider its letters are
constexpr double kCaptionSize = 12;
constexpr double kCaptionLine = 16;
constexpr double kLabelSize = 12.5;
constexpr double kLowLegend = 80;  // more than that makes the chart higher

void check(const Chart& chart) {
  for (const Series& series : chart.series) {
    const std::size_t count = series.x.size();
    const bool band = series.low.size() == count && series.high.size() == count;
    if (series.y.size() == count && (band || (series.low.empty() && series.high.empty()))) continue;
    throw std::invalid_argument("[chart] series '" + series.name + "' of '" + chart.title +
                                "' needs one y (and low and high or neither) per x, got x " +
                                std::to_string(count) + ", y " + std::to_string(series.y.size()) +
                                ", low " + std::to_string(series.low.size()) + ", high " +
                                std::to_string(series.high.size()));
  }
}

bool has_point(const Chart& chart, const Series& series, std::size_t k) {
  return drawing::has_place(series.x[k], chart.x.log) &&
         drawing::has_place(series.y[k], chart.y.log);
}

Interval x_interval(const Chart& chart) {
  Interval x;
  for (const Series& series : chart.series) {
    for (std::size_t k = 0; k < series.x.size(); ++k) {
      if (has_point(chart, series, k)) x.take(drawing::along(series.x[k], chart.x.log));
    }
  }
  return x;
}

/// Of the lines and, as far as that does not make them flat, of their bands.
Interval y_interval(const Chart& chart) {
  Interval lines;
  Interval bands;
  for (const Series& series : chart.series) {
    for (std::size_t k = 0; k < series.x.size(); ++k) {
      if (!has_point(chart, series, k)) continue;
      lines.take(drawing::along(series.y[k], chart.y.log));
      if (series.low.empty()) continue;
      for (double bound : {series.low[k], series.high[k]}) {
        if (!drawing::has_place(bound, chart.y.log)) continue;
        bands.take(drawing::along(bound, chart.y.log));
      }
    }
  }
  if (lines.empty() || bands.empty()) return lines;
  const double span = lines.high - lines.low;
  const double most = chart.y.log ? std::max(span, 1.0) : span;
  if (most == 0) return {std::min(lines.low, bands.low), std::max(lines.high, bands.high)};
  return {std::max(std::min(lines.low, bands.low), lines.low - most),
          std::min(std::max(lines.high, bands.high), lines.high + most)};
}

std::string tick_text(const Tick& tick) {
  if (tick.exponent.empty()) return tick.base;
  return tick.base + "<tspan dy=\"-4.5\" font-size=\"8.6\">" + tick.exponent + "</tspan>";
}

std::string line(const char* colour, const std::string& path) {
  if (path.empty()) return "";
  return "<path d=\"" + path + "\" fill=\"none\" stroke=\"" + colour + "\"/>\n";
}

/// Where everything of one chart stands, within a card at (x, y).
struct Layout {
  double x = 0;
  double y = 0;
  double height = kHeight;
  std::vector<std::string> title;
  std::vector<std::string> caption;
  Legend beside;
  Legend below;
};

enum class LegendPlace { own, none };

/// How many lines there are beyond those for which a chart has room.
double more_than(std::size_t usual, std::size_t lines) {
  return lines > usual ? static_cast<double>(lines - usual) : 0;
}

Layout lay_out(const Chart& chart, LegendPlace place) {
  Layout layout;
  const double room = kWidth - 2 * kPad;
  layout.title = drawing::wrapped(chart.title, room / kBold, kTitleSize);
  layout.caption = drawing::wrapped(chart.caption, room, kCaptionSize);
  layout.height += more_than(1, layout.title.size()) * kTitleLine +
                   more_than(2, layout.caption.size()) * kCaptionLine;
  if (place == LegendPlace::none) return layout;
  std::vector<const Series*> entries = drawing::entries_of({&chart, 1});
  if (drawing::fits_beside(entries)) {
    layout.beside = drawing::legend_beside(std::move(entries));
  } else {
    layout.below = drawing::legend_below(std::move(entries), kWidth - 2 * kPad);
    layout.height += std::max(0.0, layout.below.height() - kLowLegend);
  }
  return layout;
}

Plot plot_of(const Chart& chart, const Layout& layout) {
  const double lines = static_cast<double>(layout.title.size());
  const double title = lines == 0 ? 0 : lines * kTitleLine + 5;
  const double caption = kCaptionLine * static_cast<double>(layout.caption.size());
  const double below = layout.below.rows == 0 ? 0 : layout.below.height() + 10;
  Plot plot;
  plot.y = {.log = chart.y.log,
            .range = drawing::shown_range(y_interval(chart), chart.y.log),
            .start = layout.y + layout.height - 40 - (chart.x.label.empty() ? 0 : 24) - below,
            .end = layout.y + kPad + title + caption + 6,
            .vertical = true};
  double widest = 0;
  for (const Tick& tick : ticks_of(plot.y)) widest = std::max(widest, drawing::width_of(tick));
  const double left = kPad + widest + 8 + (chart.y.label.empty() ? 0 : 24);
  const double beside = layout.beside.rows == 0 ? 0 : layout.beside.width();
  plot.x = {.log = chart.x.log,
            .range = drawing::shown_range(x_interval(chart), chart.x.log),
            .start = layout.x + left,
            .end = layout.x + kWidth - kPad - 6 - beside};
  return plot;
}

std::string x_axis(const Plot& plot) {
  std::string grid;
  std::string marks;
  std::string labels;
  for (double value : minor_ticks(plot.x)) {
    marks += "M" + pixels(plot.x.at(value)) + " " + pixels(plot.y.start) + "v3";
  }
  for (const Tick& tick : ticks_of(plot.x)) {
    const std::string x = pixels(plot.x.at(tick.value));
    grid += "M" + x + " " + pixels(plot.y.start) + "V" + pixels(plot.y.end);
    marks += "M" + x + " " + pixels(plot.y.start) + "v6";
    labels += text_at(plot.x.at(tick.value), plot.y.start + 20, "tick x", tick_text(tick));
  }
  marks += "M" + pixels(plot.x.start) + " " + pixels(plot.y.start) + "H" + pixels(plot.x.end);
  return line("#e8edf3", grid) + line("#94a3b8", marks) + labels;
}

std::string y_axis(const Plot& plot) {
  std::string grid;
  std::string marks;
  std::string labels;
  for (double value : minor_ticks(plot.y)) {
    marks += "M" + pixels(plot.x.start) + " " + pixels(plot.y.at(value)) + "h-3";
  }
  for (const Tick& tick : ticks_of(plot.y)) {
    const std::string y = pixels(plot.y.at(tick.value));
    grid += "M" + pixels(plot.x.start) + " " + y + "H" + pixels(plot.x.end);
    labels += text_at(plot.x.start - 8, plot.y.at(tick.value) + 4, "tick y", tick_text(tick));
  }
  return line("#e8edf3", grid) + line("#94a3b8", marks) + labels;
}

/// In smaller letters where the axis is too short for the words.
std::string axis_label(double x, double y, const std::string& words, double room) {
  const double wide = drawing::text_width(words, kLabelSize);
  std::string style = "label";
  if (wide > room) style += "\" style=\"font-size:" + pixels(kLabelSize * room / wide) + "px";
  return text_at(x, y, style, escaped(words));
}

std::string axis_labels(const Chart& chart, const Layout& layout, const Plot& plot) {
  std::string out;
  const double middle = (plot.x.start + plot.x.end) / 2;
  if (!chart.x.label.empty()) {
    out += axis_label(middle, plot.y.start + 43, chart.x.label, plot.x.length());
  }
  if (!chart.y.label.empty()) {
    const double height = (plot.y.start + plot.y.end) / 2;
    out += "<g transform=\"translate(" + pixels(layout.x + kPad + 8) + " " + pixels(height) +
           ") rotate(-90)\">\n" + axis_label(0, 0, chart.y.label, plot.y.length() + 30) + "</g>\n";
  }
  return out;
}

std::string card(const Layout& layout) {
  return "<rect" + attribute("x", layout.x + 0.5) + attribute("y", layout.y + 0.5) +
         attribute("width", kWidth - 1) + attribute("height", layout.height - 1) +
         " rx=\"12\" fill=\"#ffffff\" stroke=\"#e2e8f0\"/>\n";
}

std::string words_above(const Layout& layout) {
  double y = layout.y + kPad;
  std::string out;
  for (const std::string& words : layout.title) {
    out += text_at(layout.x + kPad, y + kTitleSize - 1, "title", escaped(words));
    y += kTitleLine;
  }
  for (const std::string& words : layout.caption) {
    y += kCaptionLine;
    out += text_at(layout.x + kPad, y - 2, "caption", escaped(words));
  }
  return out;
}

std::string draw_chart(const Chart& chart, const Layout& layout, const Looks& looks) {
  const Plot plot = plot_of(chart, layout);
  std::string out = "<g role=\"group\" aria-label=\"" + escaped(chart.title) + "\">\n";
  out += card(layout) + words_above(layout);
  if (x_interval(chart).empty()) {
    const double middle = (plot.y.start + plot.y.end) / 2;
    return out + text_at(layout.x + kWidth / 2, middle, "none", "no data") + "</g>\n";
  }
  out += x_axis(plot) + y_axis(plot) + axis_labels(chart, layout, plot);
  for (const Series& series : chart.series) out += draw_spread(series, looks.of(series), plot);
  for (const Series& series : chart.series) out += draw_series(series, looks.of(series), plot);
  if (layout.beside.rows > 0) {
    out += draw_legend(layout.beside, looks, plot.x.end + 18, plot.y.end - 4);
  }
  if (layout.below.rows > 0) {
    const double y = layout.y + layout.height - layout.below.height() - 12;
    out += draw_legend(layout.below, looks, layout.x + kPad, y);
  }
  return out + "</g>\n";
}

/// "Loss: error against step; ring, torus".
std::string described(const Chart& chart) {
  std::string out = chart.title;
  if (!chart.x.label.empty() && !chart.y.label.empty()) {
    out += (out.empty() ? "" : ": ") + chart.y.label + " against " + chart.x.label;
  }
  std::string names;
  for (const Series* series : drawing::entries_of({&chart, 1})) {
    names += (names.empty() ? "" : ", ") + series->name;
  }
  return out + (names.empty() || out.empty() ? "" : "; ") + names;
}

std::string opened(double width, double height, const std::string& title,
                   const std::string& description) {
  return "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"chart\" viewBox=\"0 0 " +
         pixels(width) + " " + pixels(height) +
         "\" width=\"100%\" style=\"max-width:" + pixels(width) +
         "px\" role=\"img\" aria-label=\"" + escaped(description) + "\">\n<title>" +
         escaped(title) + "</title>\n" + drawing::style_sheet();
}

bool one_legend(std::span<const Chart> charts) {
  const std::size_t all = drawing::entries_of(charts).size();
  return charts.size() > 1 && std::all_of(charts.begin(), charts.end(), [&](const Chart& chart) {
           return drawing::entries_of({&chart, 1}).size() == all;
         });
}

std::size_t columns_of(std::span<const Chart> charts, int columns) {
  if (columns < 1) {
    throw std::invalid_argument("[chart] columns must be 1 or more, got " +
                                std::to_string(columns));
  }
  return std::clamp<std::size_t>(charts.size(), 1, static_cast<std::size_t>(columns));
}

/// Rows of charts from `top` on, each as high as its highest.
std::vector<Layout> arrange(std::span<const Chart> charts, std::size_t columns, double top,
                            bool shared_legend) {
  std::vector<Layout> layouts;
  for (const Chart& chart : charts) {
    check(chart);
    layouts.push_back(lay_out(chart, shared_legend ? LegendPlace::none : LegendPlace::own));
  }
  for (std::size_t begin = 0; begin < layouts.size(); begin += columns) {
    const std::size_t end = std::min(begin + columns, layouts.size());
    double height = 0;
    for (std::size_t k = begin; k < end; ++k) height = std::max(height, layouts[k].height);
    for (std::size_t k = begin; k < end; ++k) {
      layouts[k].x = kOutside + static_cast<double>(k - begin) * (kWidth + kGap);
      layouts[k].y = top;
      layouts[k].height = height;
    }
    top += height + kGap;
  }
  return layouts;
}

}  // namespace

std::vector<std::string> to_svgs(std::span<const Chart> charts) {
  const Looks looks(charts);
  std::vector<std::string> out;
  for (const Chart& chart : charts) {
    check(chart);
    const Layout layout = lay_out(chart, LegendPlace::own);
    const std::string name = chart.title.empty() ? "Chart" : chart.title;
    out.push_back(opened(kWidth, layout.height, name, described(chart)) +
                  draw_chart(chart, layout, looks) + "</svg>\n");
  }
  return out;
}

std::string to_svg(const Chart& chart) { return to_svgs({&chart, 1}).front(); }

std::string to_svg(std::string_view title, std::span<const Chart> charts, int columns) {
  const std::size_t wide = columns_of(charts, columns);
  const double width = 2 * kOutside + static_cast<double>(wide) * (kWidth + kGap) - kGap;
  const double inside = width - 2 * kOutside;
  const bool shared = one_legend(charts);
  const Looks looks(charts);
  std::string body;
  std::string description(title);
  double bottom = kOutside;
  for (const std::string& words : drawing::wrapped(title, inside / kBold, kHeadingSize)) {
    body += text_at(kOutside, bottom + kHeadingSize, "heading", escaped(words));
    bottom += kHeadingLine;
  }
  if (!title.empty()) bottom += kHeading - kHeadingLine;
  const std::vector<Layout> layouts = arrange(charts, wide, bottom, shared);
  for (std::size_t k = 0; k < charts.size(); ++k) {
    bottom = layouts[k].y + layouts[k].height;
    body += draw_chart(charts[k], layouts[k], looks);
    description += (description.empty() ? "" : ". ") + described(charts[k]);
  }
  if (shared) {
    const double room = inside - 2 * kPad;
    const Legend legend = drawing::legend_below(drawing::entries_of(charts), room);
    body += draw_legend(legend, looks, kOutside + kPad, bottom + 14);
    bottom += legend.height() + 8;
  }
  const std::string name(title.empty() ? "Charts" : title);
  return opened(width, bottom + kOutside, name, description) +
         "<rect width=\"100%\" height=\"100%\" fill=\"#f8fafc\"/>\n" + body + "</svg>\n";
}

}  // namespace gossamer
