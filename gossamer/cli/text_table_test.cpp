#include "gossamer/cli/text_table.h"

#include <gtest/gtest.h>

#include <cmath>

namespace gossamer {
namespace {

TEST(TextTable, AlignsTheFirstColumnsToTheLeftAndTheOthersToTheRight) {
  EXPECT_EQ(text_table({{"name", "x", "long"}, {"ρ", "10"}, {"", "", "3"}}),
            "name   x  long\n"
            "ρ     10\n"
            "             3\n");
  EXPECT_EQ(text_table({{"a", "bb"}, {"ccc", "d"}}, 2), "a    bb\nccc  d\n");
  EXPECT_EQ(text_table({{"a", "bb"}, {"ccc", "d"}}, 0), "  a  bb\nccc   d\n");
  EXPECT_EQ(text_table({}), "");
}

TEST(FourDigits, SayInfinityAndNothing) {
  EXPECT_EQ(four_digits(0.000123456), "0.0001235");
  EXPECT_EQ(four_digits(INFINITY), "inf");
  EXPECT_EQ(four_digits(std::nan("")), "-");
}

}  // namespace
}  // namespace gossamer
