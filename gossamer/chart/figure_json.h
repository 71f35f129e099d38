#pragma once
/// A figure as JSON: what commands print, and what python/gossamer/report/charts.py draws.

#include "gossamer/base/json.h"
#include "gossamer/chart/chart.h"

namespace gossamer {

/// All fields of the figure. What is no finite number is null. Of a series, `low`, `high`,
/// `points`, `dashed` and `like` are there only where they say something.
/// std::invalid_argument where x, y, low and high differ in length.
Json figure_json(const Figure& figure);

}  // namespace gossamer
