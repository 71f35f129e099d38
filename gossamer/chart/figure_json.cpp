#include "gossamer/chart/figure_json.h"

#include "gossamer/base/errors.h"

namespace gossamer {
namespace {

void check_lengths(const Series& series, const Chart& chart) {
  const std::size_t count = series.x.size();
  const bool has_band = !series.low.empty() || !series.high.empty();
  const bool fits = !has_band || (series.low.size() == count && series.high.size() == count);
  if (series.y.size() == count && fits) return;
  fail_argument({.place = "chart",
                 .what = "series '" + series.name + "' of '" + chart.title +
                         "' needs one y (and low and high or neither) per x",
                 .got = "x " + std::to_string(count) + ", y " + std::to_string(series.y.size()) +
                        ", low " + std::to_string(series.low.size()) + ", high " +
                        std::to_string(series.high.size())});
}

Json numbers(const std::vector<double>& values) {
  Json json = Json::array();
  for (double value : values) json.push_back(finite_json(value));
  return json;
}

Json series_json(const Series& series) {
  Json json{{"name", series.name}, {"x", numbers(series.x)}, {"y", numbers(series.y)}};
  if (!series.low.empty()) json["low"] = numbers(series.low);
  if (!series.high.empty()) json["high"] = numbers(series.high);
  if (series.points) json["points"] = true;
  if (series.dashed) json["dashed"] = true;
  if (!series.like.empty()) json["like"] = series.like;
  return json;
}

Json chart_json(const Chart& chart) {
  Json json{{"title", chart.title},   {"caption", chart.caption}, {"x", chart.x.label},
            {"log_x", chart.x.log},   {"y", chart.y.label},       {"log_y", chart.y.log},
            {"series", Json::array()}};
  for (const Series& series : chart.series) {
    check_lengths(series, chart);
    json["series"].push_back(series_json(series));
  }
  return json;
}

}  // namespace

Json figure_json(const Figure& figure) {
  Json json{{"figure", figure.name},   {"title", figure.title}, {"text", figure.text},
            {"header", figure.header}, {"rows", figure.rows},   {"columns", figure.columns},
            {"charts", Json::array()}};
  for (const Chart& chart : figure.charts) json["charts"].push_back(chart_json(chart));
  return json;
}

}  // namespace gossamer
