#include "gossamer/lab/chart_axis.h"

#include <gtest/gtest.h>

#include <cmath>

#include "gossamer/lab/chart_text.h"

namespace gossamer::drawing {
namespace {

std::vector<std::string> labels(const std::vector<double>& values, bool log) {
  std::vector<std::string> out;
  for (const Tick& tick : labelled(values, log)) {
    out.push_back(tick.base + (tick.exponent.empty() ? "" : "^" + tick.exponent));
  }
  return out;
}

std::vector<double> values_of(const std::vector<Tick>& ticks) {
  std::vector<double> out;
  for (const Tick& tick : ticks) out.push_back(tick.value);
  return out;
}

using Values = std::vector<double>;
using Words = std::vector<std::string>;

TEST(LinearTicks, AreMultiplesOfOneTwoOrFive) {
  EXPECT_EQ(linear_ticks({0, 1}, 6), (Values{0, 0.2, 0.4, 0.6, 0.8, 1}));
  EXPECT_EQ(linear_ticks({0, 1}, 5), (Values{0, 0.5, 1}));
  EXPECT_EQ(linear_ticks({-7, 12}, 5), (Values{-5, 0, 5, 10}));
  EXPECT_EQ(linear_ticks({0.1, 0.7}, 7), (Values{0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7}));
  EXPECT_EQ(linear_ticks({0, 1e-5}, 6), (Values{0, 2e-6, 4e-6, 6e-6, 8e-6, 1e-5}));
  EXPECT_EQ(linear_ticks({-1e300, 1e300}, 3), (Values{-1e300, 0, 1e300}));
}

TEST(LinearTicks, AreAtLeastTwoAndAtMostAsManyAsAsked) {
  for (int most = 3; most < 12; ++most) {
    for (double low = -3.7; low < 3; low += 0.37) {
      for (double span = 1e-3; span < 1e6; span *= 3.3) {
        const Values ticks = linear_ticks({low, low + span}, most);
        EXPECT_GE(ticks.size(), 1u) << low << " " << span;
        EXPECT_LE(ticks.size(), static_cast<std::size_t>(most));
        EXPECT_GE(ticks.front(), low - 1e-6 * span);
        EXPECT_LE(ticks.back(), low + span + 1e-6 * span);
      }
    }
  }
}

TEST(LogTicks, AreDecadesFromTwoDecadesOn) {
  const Scale scale{.log = true, .range = {-3.1, 0.1}, .start = 400, .end = 0, .vertical = true};
  const std::vector<Tick> ticks = ticks_of(scale);
  ASSERT_EQ(ticks.size(), 4u);
  for (int k = 0; k < 4; ++k) {
    EXPECT_EQ(ticks[static_cast<std::size_t>(k)].base, "10");
    EXPECT_DOUBLE_EQ(ticks[static_cast<std::size_t>(k)].value, std::pow(10.0, k - 3));
  }
  EXPECT_EQ(ticks[0].exponent, "−3");
  EXPECT_EQ(ticks[3].exponent, "0");
}

TEST(LogTicks, HaveTwoAndFiveBelowTwoDecades) {
  const Scale scale{.log = true, .range = {-0.05, 1.35}, .start = 0, .end = 500};
  EXPECT_EQ(values_of(ticks_of(scale)), (Values{1, 2, 5, 10, 20}));
}

TEST(LogTicks, OfASmallRangeAreLinear) {
  const Scale scale{
      .log = true, .range = {std::log10(2.05), std::log10(2.95)}, .start = 0, .end = 500};
  EXPECT_EQ(values_of(ticks_of(scale)), (Values{2.2, 2.4, 2.6, 2.8}));
}

TEST(LogTicks, SkipDecadesWhereThereAreMany) {
  const Scale scale{.log = true, .range = {-300, 300}, .start = 300, .end = 0, .vertical = true};
  const std::vector<Tick> ticks = ticks_of(scale);
  ASSERT_GE(ticks.size(), 5u);
  EXPECT_LE(ticks.size(), 15u);
  const double every = std::log10(ticks[1].value / ticks[0].value);
  for (std::size_t k = 1; k < ticks.size(); ++k) {
    EXPECT_NEAR(std::log10(ticks[k].value / ticks[k - 1].value), every, 1e-6);
  }
}

TEST(Ticks, LabelsNeverTouch) {
  for (bool log : {false, true}) {
    for (double length : {120.0, 300.0, 560.0}) {
      for (double low = -9; low < 9; low += 1.3) {
        for (double span = 0.02; span < 40; span *= 1.7) {
          const Scale scale{
              .log = log, .range = {low, low + span}, .start = 50, .end = 50 + length};
          const std::vector<Tick> ticks = ticks_of(scale);
          ASSERT_FALSE(ticks.empty()) << log << length << " " << low << " " << span;
          for (std::size_t k = 1; k < ticks.size(); ++k) {
            const double apart = scale.at(ticks[k].value) - scale.at(ticks[k - 1].value);
            EXPECT_GT(apart, (width_of(ticks[k]) + width_of(ticks[k - 1])) / 2)
                << log << length << " " << low << " " << span;
          }
        }
      }
    }
  }
}

TEST(Labels, HaveTheDecimalsThatTellThemApart) {
  EXPECT_EQ(labels({0, 0.25, 0.5}, false), (Words{"0", "0.25", "0.50"}));
  EXPECT_EQ(labels({-5, 0, 5}, false), (Words{"−5", "0", "5"}));
  EXPECT_EQ(labels({0, 1000, 2000}, false), (Words{"0", "1\u202F000", "2\u202F000"}));
  EXPECT_EQ(labels({0, 5000, 10000}, false), (Words{"0", "5k", "10k"}));
  EXPECT_EQ(labels({0, 500000, 1000000}, false), (Words{"0", "500k", "1M"}));
  EXPECT_EQ(labels({0, 2e-6, 1e-5}, false), (Words{"0", "0.2×10^−5", "1.0×10^−5"}));
}

TEST(Labels, OfLogAxesArePlainNearOneAndElsePowers) {
  EXPECT_EQ(labels({0.1, 1, 10, 100}, true), (Words{"0.1", "1", "10", "100"}));
  EXPECT_EQ(labels({0.01, 0.1, 1}, true), (Words{"10^−2", "10^−1", "10^0"}));
  EXPECT_EQ(labels({1e-4, 2e-4, 5e-4}, true), (Words{"10^−4", "2×10^−4", "5×10^−4"}));
}

TEST(ShownRange, HoldsTheDataAndStartsAtZeroNearIt) {
  EXPECT_EQ(shown_range({1, 100}, false).low, 0);
  EXPECT_LT(shown_range({50, 100}, false).low, 50);
  EXPECT_GT(shown_range({50, 100}, false).low, 45);
  const Interval constant = shown_range({5, 5}, false);
  EXPECT_DOUBLE_EQ((constant.low + constant.high) / 2, 5);
  EXPECT_EQ(shown_range({0, 0}, false).low, -1);
  EXPECT_DOUBLE_EQ(shown_range({2, 2}, true).low, 1.5);
  EXPECT_FALSE(shown_range({}, true).empty());
}

TEST(Text, IsBrokenBetweenCharacters) {
  EXPECT_EQ(wrapped("ring", 100, 12), std::vector<std::string>{"ring"});
  const std::string word = "αβγδεζηθικλμ";
  std::string all;
  for (const std::string& line : wrapped(word, 60, 12)) {
    EXPECT_LE(text_width(line, 12), 60);
    EXPECT_EQ(escaped(line), line) << "no half of a character";
    all += line;
  }
  EXPECT_EQ(all, word);
  EXPECT_EQ(wrapped("ab", 1, 12), (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(escaped("a\xC3"), "a\uFFFD");
  EXPECT_EQ(escaped("\xED\xA0\x80"), "\uFFFD\uFFFD\uFFFD") << "a surrogate";
}

TEST(Text, WrapsAtSpaces) {
  const std::vector<std::string> lines = wrapped("one two three four five six", 60, 12);
  ASSERT_GE(lines.size(), 3u);
  EXPECT_EQ(lines[0], "one two");
  std::string all;
  for (const std::string& line : lines) {
    EXPECT_LE(text_width(line, 12), 60);
    all += (all.empty() ? "" : " ") + line;
  }
  EXPECT_EQ(all, "one two three four five six");
  EXPECT_TRUE(wrapped("", 60, 12).empty());
}

}  // namespace
}  // namespace gossamer::drawing
