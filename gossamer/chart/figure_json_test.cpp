#include "gossamer/chart/figure_json.h"

#include <gtest/gtest.h>

#include <limits>
#include <stdexcept>

namespace gossamer {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

Figure small() {
  return {.name = "gaps",
          .title = "Spectral gaps",
          .text = "One.\n\nTwo.",
          .charts = {{.title = "T",
                      .caption = "C",
                      .x = {.label = "steps"},
                      .y = {.label = "loss", .log = true},
                      .series = {{.name = "ring", .x = {1, 2}, .y = {3, 4}}}}},
          .header = {"topology", "gap"},
          .rows = {{"ring", "0.5"}},
          .columns = 3};
}

TEST(FigureJson, HasAllThatDrawingNeeds) {
  EXPECT_EQ(figure_json(small()), Json::parse(R"({
    "figure": "gaps", "title": "Spectral gaps", "text": "One.\n\nTwo.",
    "header": ["topology", "gap"], "rows": [["ring", "0.5"]], "columns": 3,
    "charts": [{"title": "T", "caption": "C", "x": "steps", "log_x": false, "y": "loss",
                "log_y": true, "series": [{"name": "ring", "x": [1.0, 2.0], "y": [3.0, 4.0]}]}]
  })"));
}

TEST(FigureJson, ASeriesSaysWhatItDiffersIn) {
  Figure figure = small();
  figure.charts[0].series = {{.name = "a",
                              .x = {1},
                              .y = {2},
                              .low = {0.5},
                              .high = {3},
                              .points = true,
                              .dashed = true,
                              .like = "b"}};
  EXPECT_EQ(figure_json(figure)["charts"][0]["series"][0], Json::parse(R"({
    "name": "a", "x": [1.0], "y": [2.0], "low": [0.5], "high": [3.0], "points": true,
    "dashed": true, "like": "b"})"));
}

TEST(FigureJson, WhatIsNoFiniteNumberIsNull) {
  Figure figure = small();
  figure.charts[0].series[0].y = {kNaN, -kInfinity};
  EXPECT_EQ(figure_json(figure)["charts"][0]["series"][0]["y"].dump(), "[null,null]");
}

TEST(FigureJson, LengthsThatDifferAreAnError) {
  Figure figure = small();
  figure.charts[0].series[0].y = {1};
  EXPECT_THROW(figure_json(figure), std::invalid_argument);
  figure = small();
  figure.charts[0].series[0].low = {1, 2};
  EXPECT_THROW(figure_json(figure), std::invalid_argument);
}

}  // namespace
}  // namespace gossamer
