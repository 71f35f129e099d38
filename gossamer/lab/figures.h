#pragma once
/// The table of figures: what the lecture shows, made again.

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "gossamer/chart/chart.h"

namespace gossamer {

struct FigureOptions {
  int trials = 0;  ///< 0: as many as the figure is made with
  int threads = 2;
  std::uint64_t seed = 1;  ///< of the samples that are drawn; the data stay the same
  std::string images;      ///< IDX files, for figures of real data
  std::string labels;
};

struct FigureRow {
  std::string_view name;
  std::string_view summary;
  Figure (*make)(const FigureOptions& options);
  bool needs_images = false;
};

std::span<const FigureRow> figures();

/// Throws std::invalid_argument that lists the valid names.
const FigureRow& find_figure(std::string_view name);

/// The row's figure with its name and title filled in.
Figure make_figure(const FigureRow& row, const FigureOptions& options);

}  // namespace gossamer
