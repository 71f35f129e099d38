#pragma once
/// Which series of a figure have which look, and the legend that says so.

#include <map>
#include <span>
#include <string>
#include <vector>

#include "gossamer/lab/chart.h"
#include "gossamer/lab/chart_curve.h"

namespace gossamer::drawing {

/// Colours by the names of series, in the order in which the charts name them first.
class Looks {
 public:
  explicit Looks(std::span<const Chart> charts);
  Look of(const Series& series) const;

 private:
  std::map<std::string, std::size_t> places_;
};

/// The series that a legend lists: those with a name, alike ones once.
std::vector<const Series*> entries_of(std::span<const Chart> charts);

/// Entries in columns of one width, read downwards.
struct Legend {
  std::vector<const Series*> entries;
  std::size_t columns = 0;
  std::size_t rows = 0;
  double column_width = 0;
  std::size_t lines = 1;  ///< of the longest name
  double width() const { return static_cast<double>(columns) * column_width; }
  double row_height() const;
  double height() const;
};

/// One column as wide as its longest name.
Legend legend_beside(std::vector<const Series*> entries);

/// As many columns as the width takes; a name that is wider has several lines.
Legend legend_below(std::vector<const Series*> entries, double width);

std::string draw_legend(const Legend& legend, const Looks& looks, double x, double y);

/// Whether a legend beside the plot leaves it most of the width.
bool fits_beside(const std::vector<const Series*>& entries);

}  // namespace gossamer::drawing
