#include "gossamer/lab/chart.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>

#include "gossamer/lab/chart_case.h"

namespace gossamer {
namespace {

using chart_case::count;
using chart_case::Dot;
using chart_case::dots;
using chart_case::paths;
using chart_case::tick_at;
using chart_case::xml_error;

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();
const std::string kLine = "stroke-linejoin";
const std::string kBand = "fill-opacity";
const std::string kMarker = "stroke=\"#ffffff\"";

Chart chart_of(std::vector<double> x, std::vector<double> y, bool log_x = false,
               bool log_y = false) {
  return {.title = "T",
          .x = {.label = "steps", .log = log_x},
          .y = {.label = "loss", .log = log_y},
          .series = {{.name = "", .x = std::move(x), .y = std::move(y)}}};
}

std::vector<Dot> line_of(const Chart& chart) {
  const std::vector<std::string> lines = paths(to_svg(chart), kLine);
  return lines.empty() ? std::vector<Dot>{} : dots(lines.front());
}

std::string power(const std::string& exponent) { return "10^" + exponent; }

/// Of lines and swatches, in their order.
std::vector<std::string> colours_of(const std::string& svg) {
  const std::string end = "\" stroke-width=\"2\"";
  std::vector<std::string> colours = chart_case::all(svg, "fill=\"none\" stroke=\"", end);
  std::erase_if(colours, [](const std::string& colour) { return colour.size() != 7; });
  return colours;
}

TEST(Chart, PointsOnLinearAxesStandAtTheirTicks) {
  const Chart chart = chart_of({0, 20, 100}, {5, 10, 2.5});
  const std::string svg = to_svg(chart);
  const std::vector<Dot> line = line_of(chart);
  ASSERT_EQ(line.size(), 3u);
  EXPECT_NEAR(line[0].x, tick_at(svg, "x", "0"), 0.02);
  EXPECT_NEAR(line[1].x, tick_at(svg, "x", "20"), 0.02);
  EXPECT_NEAR(line[2].x, tick_at(svg, "x", "100"), 0.02);
  const double four = tick_at(svg, "y", "4");
  const double six = tick_at(svg, "y", "6");
  EXPECT_NEAR(line[0].y, (four + six) / 2, 0.02);
  EXPECT_NEAR(line[1].y, tick_at(svg, "y", "10"), 0.02);
  EXPECT_LT(line[1].y, line[0].y) << "upwards is less";
  EXPECT_NEAR((line[1].x - line[0].x) / (line[2].x - line[0].x), 0.2, 1e-3);
}

TEST(Chart, PointsOnLogAxesStandAtTheirDecades) {
  const Chart chart = chart_of({1, 1000, 1e6}, {1e-6, 1e-2, 1}, true, true);
  const std::string svg = to_svg(chart);
  const std::vector<Dot> line = line_of(chart);
  ASSERT_EQ(line.size(), 3u);
  EXPECT_NEAR(line[0].x, tick_at(svg, "x", power("0")), 0.02);
  EXPECT_NEAR(line[1].x, tick_at(svg, "x", power("3")), 0.02);
  EXPECT_NEAR(line[2].x, tick_at(svg, "x", power("6")), 0.02);
  EXPECT_NEAR(line[0].y, tick_at(svg, "y", power("−6")), 0.02);
  EXPECT_NEAR(line[1].y, tick_at(svg, "y", power("−2")), 0.02);
  EXPECT_NEAR(line[2].y, tick_at(svg, "y", power("0")), 0.02);
  EXPECT_NEAR(line[1].x, (line[0].x + line[2].x) / 2, 0.02);
}

TEST(Chart, ValuesWithoutAPlaceLeaveGaps) {
  const Chart linear = chart_of({0, 1, 2, 3, 4, 5, 6}, {1, 2, kNaN, 3, 4, kInfinity, 5});
  const std::string path = paths(to_svg(linear), kLine).front();
  EXPECT_EQ(count(path, "M"), 2u) << path;
  EXPECT_EQ(count(path, "L"), 2u) << path;
  const Chart log = chart_of({0, 1, 2, 3, 4}, {1, 2, 0, 3, -4}, false, true);
  const std::string svg = to_svg(log);
  EXPECT_EQ(count(paths(svg, kLine).front(), "M"), 1u);
  EXPECT_EQ(dots(paths(svg, kMarker).front()).size(), 3u) << "a point alone is seen";
  EXPECT_EQ(svg.find("nan"), std::string::npos);
  EXPECT_EQ(svg.find("inf"), std::string::npos);
}

TEST(Chart, ALongSeriesKeepsItsEndsAndItsPeak) {
  for (bool log_x : {false, true}) {
    std::vector<double> x;
    std::vector<double> y;
    for (int k = 1; k <= 50000; ++k) {
      x.push_back(k);
      y.push_back(k == 31234 ? 100 : std::sin(k));
    }
    const std::vector<Dot> line = line_of(chart_of(x, y, log_x));
    const std::vector<Dot> ends =
        line_of(chart_of({1, 31234, 50000}, {y[0], 100, y.back()}, log_x));
    ASSERT_EQ(ends.size(), 3u);
    EXPECT_LE(line.size(), 400u);
    EXPECT_GE(line.size(), log_x ? 250u : 380u);
    EXPECT_NEAR(line.front().x, ends.front().x, 0.02);
    EXPECT_NEAR(line.back().x, ends.back().x, 0.02);
    const auto highest =
        std::min_element(line.begin(), line.end(), [](Dot a, Dot b) { return a.y < b.y; });
    EXPECT_NEAR(highest->x, ends[1].x, 0.02);
    const double middle = (line.front().x + line.back().x) / 2;
    const auto left =
        std::count_if(line.begin(), line.end(), [&](Dot dot) { return dot.x < middle; });
    EXPECT_NEAR(static_cast<double>(left) / static_cast<double>(line.size()), 0.5, 0.17);
  }
}

TEST(Chart, ALongSeriesKeepsWideGaps) {
  std::vector<double> x;
  std::vector<double> y;
  for (int k = 0; k < 10000; ++k) {
    x.push_back(k);
    y.push_back(k >= 4000 && k < 6000 ? kNaN : k % 7);
  }
  EXPECT_EQ(count(paths(to_svg(chart_of(x, y)), kLine).front(), "M"), 2u);
}

TEST(Chart, ABandIsClosedAndStaysInsideThePlot) {
  Chart chart = chart_of({1, 2, 3}, {1, 0.1, 0.01}, false, true);
  chart.series[0].low = {0.5, -1, 0.005};
  chart.series[0].high = {2, 0.2, 0.02};
  const std::string svg = to_svg(chart);
  const std::string path = paths(svg, kBand).front();
  const std::vector<Dot> band = dots(path);
  ASSERT_EQ(band.size(), 6u);
  EXPECT_EQ(path.back(), 'Z');
  const std::vector<Dot> line = line_of(chart);
  for (std::size_t k = 0; k < 3; ++k) {
    EXPECT_NEAR(band[k].x, line[k].x, 0.02);
    EXPECT_LT(band[k].y, line[k].y);
    EXPECT_NEAR(band[5 - k].x, line[k].x, 0.02);
    EXPECT_GT(band[5 - k].y, line[k].y);
  }
  // log10: 1 to 2 above the line is as far as 0.5 to 1 below it.
  EXPECT_NEAR(line[0].y - band[0].y, band[5].y - line[0].y, 0.03);
  EXPECT_GE(band[4].y, band[3].y) << "what has no logarithm lies on the lower edge";
  EXPECT_LT(band[4].y, 420);
}

TEST(Chart, AFarBandDoesNotFlattenTheLine) {
  Chart chart = chart_of({1, 2, 3}, {1, 2, 3});
  chart.series[0].low = {1, -1e6, 3};
  chart.series[0].high = {1, 1e6, 3};
  const std::vector<Dot> line = line_of(chart);
  ASSERT_EQ(line.size(), 3u);
  EXPECT_GT(line[0].y - line[2].y, 80);
}

TEST(Chart, PointsHaveMarkersAndErrorBarsAndNoLine) {
  Chart chart = chart_of({1, 2, 3}, {1, 2, 3});
  chart.series[0].points = true;
  chart.series[0].low = {0.5, 1.5, 2.5};
  chart.series[0].high = {1.5, 2.5, 3.5};
  const std::string svg = to_svg(chart);
  EXPECT_TRUE(paths(svg, "stroke-width=\"2\"").empty());
  EXPECT_TRUE(paths(svg, kBand).empty());
  EXPECT_EQ(dots(paths(svg, kMarker).front()).size(), 3u);
  EXPECT_EQ(count(paths(svg, "stroke-width=\"1.2\"").front(), "V"), 3u);
}

TEST(Chart, WordsAreEscapedAndNeverCut) {
  Chart chart = chart_of({1, 2}, {1, 2});
  chart.title = "a < b & \"c\"\x01\xFF";
  chart.series[0].name = "<script>" + std::string(300, 'w');
  const std::string svg = to_svg(chart);
  EXPECT_EQ(xml_error(svg), "");
  EXPECT_NE(svg.find("a &lt; b &amp; &quot;c&quot; \uFFFD"), std::string::npos);
  EXPECT_EQ(svg.find("<script>"), std::string::npos);
  const std::vector<std::string> names = chart_case::all(svg, "class=\"name\">", "</text>");
  ASSERT_GT(names.size(), 1u) << "several lines";
  std::string all;
  for (const std::string& name : names) all += name;
  EXPECT_EQ(all, "&lt;script&gt;" + std::string(300, 'w'));
}

TEST(Chart, LongWordsMakeItHigher) {
  const auto height_of = [](const Chart& chart) {
    const std::string box = chart_case::all(to_svg(chart), "viewBox=\"0 0 640 ", "\"").front();
    return std::stod(box);
  };
  Chart chart = chart_of({1, 2}, {1, 2});
  EXPECT_EQ(height_of(chart), 420);
  std::string words;
  for (int k = 0; k < 100; ++k) words += "words ";
  for (std::string* place : {&chart.title, &chart.caption, &chart.series[0].name}) {
    const double before = height_of(chart);
    *place = words;
    EXPECT_GT(height_of(chart), before);
  }
  chart.x.label = chart.y.label = words;
  EXPECT_EQ(to_svg(chart).find("…"), std::string::npos);
}

TEST(Chart, FitsAnyWidthAndFollowsLightOrDark) {
  const std::string svg = to_svg(chart_of({1, 2}, {1, 2}));
  const std::string head = svg.substr(0, svg.find('>'));
  EXPECT_NE(head.find("width=\"100%\" style=\"max-width:640px\""), head.npos) << head;
  EXPECT_EQ(head.find(" height="), head.npos) << head;
  const std::size_t end = svg.find("</style>");
  const std::string dark = svg.substr(0, end).substr(svg.find("prefers-color-scheme: dark"));
  for (const char* part : {"fill", "stroke"}) {
    const std::string before = std::string(part) + "=\"#";
    for (const std::string& colour : chart_case::all(svg.substr(end), before, "\"")) {
      EXPECT_NE(dark.find("[" + before + colour + "\"]"), dark.npos) << part << colour;
    }
  }
}

TEST(Chart, EveryShapeIsWellFormedAndTheSameAgain) {
  const std::vector<std::vector<double>> data{
      {},     {3},      {0, 0, 0},     {5, 5}, {-1e308, 1e308}, {1e-320, 1e300},
      {kNaN}, {-3, -2}, {1, 1 + 1e-15}};
  for (const std::vector<double>& y : data) {
    for (int axes = 0; axes < 4; ++axes) {
      std::vector<double> x;
      for (std::size_t k = 0; k < y.size(); ++k) x.push_back(static_cast<double>(k));
      const Chart chart = chart_of(x, y, axes % 2 == 1, axes / 2 == 1);
      const std::string svg = to_svg(chart);
      EXPECT_EQ(xml_error(svg), "") << svg;
      EXPECT_EQ(svg.find("nan"), std::string::npos) << svg;
      EXPECT_EQ(svg.find("inf"), std::string::npos) << svg;
      EXPECT_EQ(svg, to_svg(chart));
    }
  }
}

TEST(Chart, WithoutAPointItSaysSo) {
  EXPECT_NE(to_svg(chart_of({}, {})).find(">no data<"), std::string::npos);
  EXPECT_NE(to_svg(chart_of({1}, {-1}, false, true)).find(">no data<"), std::string::npos);
  EXPECT_EQ(to_svg(chart_of({1}, {1})).find(">no data<"), std::string::npos);
}

TEST(Chart, LengthsThatDifferAreAnError) {
  EXPECT_THROW(to_svg(chart_of({1, 2}, {1})), std::invalid_argument);
  Chart chart = chart_of({1, 2}, {1, 2});
  chart.series[0].low = {1, 2};
  EXPECT_THROW(to_svg(chart), std::invalid_argument);
  const std::vector<Chart> none;
  EXPECT_THROW(to_svg("", none, 0), std::invalid_argument);
  EXPECT_EQ(xml_error(to_svg("", none)), "");
}

/// Series of these names, each a line of two points.
Chart named(const std::vector<std::string>& names) {
  Chart chart;
  for (const std::string& name : names) {
    chart.series.push_back({.name = name, .x = {0, 1}, .y = {0, 1}});
  }
  return chart;
}

TEST(Chart, TwelveSeriesDifferInMoreThanColour) {
  std::vector<std::string> names;
  for (char letter = 'a'; letter < 'm'; ++letter) names.push_back(std::string(6, letter));
  const std::string svg = to_svg(named(names));
  EXPECT_EQ(xml_error(svg), "");
  for (const std::string& name : names) EXPECT_EQ(count(svg, ">" + name + "</text>"), 1u);
  std::vector<std::string> looks = chart_case::all(svg, "fill=\"none\" stroke=\"#", "/>");
  std::erase_if(looks, [](const std::string& look) { return count(look, "width=\"2\"") == 0; });
  ASSERT_EQ(looks.size(), 24u) << "lines and swatches";
  for (std::size_t a = 0; a < 12; ++a) {
    EXPECT_EQ(looks[a], looks[a + 12]);
    for (std::size_t b = 0; b < a; ++b) EXPECT_NE(looks[a], looks[b]) << a << " " << b;
  }
}

TEST(Chart, ALegendOfManyStandsBelowTheLines) {
  for (std::size_t series : {2u, 6u, 12u, 40u}) {
    std::vector<std::string> names;
    for (std::size_t k = 0; k < series; ++k) names.push_back("series " + std::to_string(k));
    const std::string svg = to_svg(named(names));
    const std::vector<Dot> line =
        dots(paths(svg.substr(0, svg.find("class=\"legend\"")), kLine)[0]);
    const std::string legend = svg.substr(svg.find("class=\"legend\""));
    for (Dot swatch : dots(paths(legend, kLine).front())) {
      EXPECT_TRUE(swatch.x > line[1].x || swatch.y > line[0].y) << series;
    }
    EXPECT_EQ(count(legend, "class=\"name\""), series);
  }
}

TEST(Chart, ANameHasOneColourInAllChartsOfAFigure) {
  const std::vector<Chart> charts{named({"ring", "torus"}), named({"torus", "ring"})};
  const std::string svg = to_svg("Both", charts);
  EXPECT_EQ(count(svg, "class=\"legend\""), 1u) << "the same names: one legend";
  const std::vector<std::string> colours = colours_of(svg);
  ASSERT_EQ(colours.size(), 6u);
  EXPECT_NE(colours[0], colours[1]);
  EXPECT_EQ(colours[0], colours[3]);
  EXPECT_EQ(colours[1], colours[2]);
  const std::vector<Chart> others{named({"ring", "torus"}), named({"torus"})};
  EXPECT_EQ(count(to_svg("", others), "class=\"legend\""), 2u);
  EXPECT_EQ(xml_error(svg), "");
}

TEST(Chart, ASeriesMayTakeTheColourOfAnother) {
  Chart chart = named({"ring", "torus", "torus, bound"});
  chart.series[2].like = "torus";
  chart.series[2].dashed = true;
  const std::string svg = to_svg(chart);
  const std::vector<std::string> colours = colours_of(svg);
  EXPECT_NE(colours[0], colours[1]);
  EXPECT_EQ(colours[1], colours[2]);
  EXPECT_EQ(count(svg, "stroke-dasharray"), 2u) << "its line and its swatch";
}

TEST(Page, HasContentsFiguresAndTables) {
  const std::vector<Figure> figures{
      {.name = "ring vs torus",
       .title = "Ring & torus",
       .text = "One.\n\nTwo <three>.",
       .charts = {named({"ring"}), named({"torus"})}},
      {.name = "ring vs torus", .header = {"topology", "steps"}, .rows = {{"ring", "1.5"}, {"a"}}}};
  const std::string html = to_html("A & b", figures);
  EXPECT_EQ(xml_error(html), "") << html;
  EXPECT_NE(html.find("<title>A &amp; b</title>"), std::string::npos);
  EXPECT_NE(html.find("<p>One.</p>\n<p>Two &lt;three&gt;.</p>"), std::string::npos);
  EXPECT_NE(html.find("<tr><td>ring</td><td class=\"number\">1.5</td></tr>"), std::string::npos);
  EXPECT_NE(html.find("<tr><td>a</td><td class=\"number\"></td></tr>"), std::string::npos);
  EXPECT_EQ(count(html, "<svg"), 2u) << "one per chart: a phone shows one below the other";
  const std::vector<std::string> links = chart_case::all(html, "href=\"#", "\"");
  const std::vector<std::string> anchors = chart_case::all(html, "section id=\"", "\"");
  ASSERT_EQ(links.size(), 2u);
  EXPECT_EQ(links, anchors);
  EXPECT_EQ(links[0], "ring-vs-torus");
  EXPECT_NE(links[0], links[1]);
  EXPECT_EQ(count(html, "http"), 2u) << "offline but for the name of SVG's namespace";
}

}  // namespace
}  // namespace gossamer
