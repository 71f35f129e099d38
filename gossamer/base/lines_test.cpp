#include "gossamer/base/lines.h"

#include <gtest/gtest.h>

namespace gossamer {
namespace {

void expect_pair(std::string_view here, std::string_view there, const LinePair& expected) {
  const LinePair found = first_difference(here, there);
  EXPECT_EQ(found.here, expected.here) << here << " | " << there;
  EXPECT_EQ(found.there, expected.there) << here << " | " << there;
}

TEST(Lines, TheFirstDifferenceIsOneOfWholeLines) {
  expect_pair("a\nb\nc", "a\nx\ny", {"b", "x"});
  expect_pair("ab", "ac", {"ab", "ac"});
  expect_pair("\na", "\nb", {"a", "b"});
  expect_pair("a\n\nb", "a\nb", {"", "b"});
}

TEST(Lines, BehindTheEndIsNothing) {
  expect_pair("a\nb", "a", {"b", "nothing"});
  expect_pair("", "b", {"nothing", "b"});
}

TEST(Lines, ALastEndOfLineIsNoLine) {
  expect_pair("a\n", "a", {"nothing", "nothing"});
  expect_pair("", "", {"nothing", "nothing"});
  expect_pair("a\nb\n", "a\nc", {"b", "c"});
}

}  // namespace
}  // namespace gossamer
