#include "gossamer/lab/chart_legend.h"

#include <algorithm>
#include <utility>

#include "gossamer/lab/chart_text.h"

namespace gossamer::drawing {
namespace {

constexpr double kNameSize = 12;
constexpr double kLine = 15;
constexpr double kRowGap = 3;
constexpr double kAround = kSwatch + 8 + 16;  // swatch, gap to the name, gap to the next column
constexpr std::size_t kMostBeside = 6;
constexpr double kWidestBeside = 150;

bool alike(const Series& a, const Series& b) {
  return a.name == b.name && a.points == b.points && a.dashed == b.dashed;
}

double widest_name(const std::vector<const Series*>& entries) {
  double widest = 0;
  for (const Series* series : entries) {
    widest = std::max(widest, text_width(series->name, kNameSize));
  }
  return widest;
}

std::vector<std::string> name_lines(const Series& series, const Legend& legend) {
  return wrapped(series.name, legend.column_width - kAround, kNameSize);
}

std::size_t rows_for(std::size_t entries, std::size_t columns) {
  return (entries + columns - 1) / columns;
}

}  // namespace

Looks::Looks(std::span<const Chart> charts) {
  for (const Chart& chart : charts) {
    for (const Series& series : chart.series) {
      places_.emplace(series.like.empty() ? series.name : series.like, places_.size());
    }
  }
}

Look Looks::of(const Series& series) const {
  const std::string& name = series.like.empty() ? series.name : series.like;
  return look_of(places_.at(name), places_.size(), series);
}

std::vector<const Series*> entries_of(std::span<const Chart> charts) {
  std::vector<const Series*> entries;
  for (const Chart& chart : charts) {
    for (const Series& series : chart.series) {
      const bool known = std::any_of(entries.begin(), entries.end(),
                                     [&](const Series* other) { return alike(*other, series); });
      if (!known && !series.name.empty()) entries.push_back(&series);
    }
  }
  return entries;
}

double Legend::row_height() const { return kLine * static_cast<double>(lines) + kRowGap; }

double Legend::height() const { return static_cast<double>(rows) * row_height(); }

Legend legend_beside(std::vector<const Series*> entries) {
  const double width = widest_name(entries);
  const std::size_t rows = entries.size();
  return {.entries = std::move(entries),
          .columns = rows == 0 ? 0u : 1u,
          .rows = rows,
          .column_width = width + kAround};
}

Legend legend_below(std::vector<const Series*> entries, double width) {
  if (entries.empty()) return {};
  const double widest = widest_name(entries) + kAround;
  const auto fitting = static_cast<std::size_t>(std::max(width / widest, 1.0));
  std::size_t columns = std::min(fitting, entries.size());
  const std::size_t rows = rows_for(entries.size(), columns);
  columns = rows_for(entries.size(), rows);
  Legend legend{.entries = std::move(entries),
                .columns = columns,
                .rows = rows,
                .column_width = std::min(width / static_cast<double>(columns), widest)};
  for (const Series* series : legend.entries) {
    legend.lines = std::max(legend.lines, name_lines(*series, legend).size());
  }
  return legend;
}

std::string draw_legend(const Legend& legend, const Looks& looks, double x, double y) {
  std::string out = "<g class=\"legend\">\n";
  for (std::size_t k = 0; k < legend.entries.size(); ++k) {
    const Series& series = *legend.entries[k];
    const double left = x + static_cast<double>(k / legend.rows) * legend.column_width;
    double line = y + static_cast<double>(k % legend.rows) * legend.row_height() + kLine / 2 + 1.5;
    out += draw_swatch(series, looks.of(series), left, line);
    for (const std::string& words : name_lines(series, legend)) {
      out += text_at(left + kSwatch + 8, line + 4, "name", escaped(words));
      line += kLine;
    }
  }
  return out + "</g>\n";
}

bool fits_beside(const std::vector<const Series*>& entries) {
  return entries.size() <= kMostBeside && widest_name(entries) <= kWidestBeside;
}

}  // namespace gossamer::drawing
