#include "gossamer/cli/amount.h"

#include <gtest/gtest.h>

#include <stdexcept>

namespace gossamer {
namespace {

TEST(ParseParameters, ReadsUnits) {
  EXPECT_EQ(parse_amount("--parameters", "25M", "plan"), 25'000'000);
  EXPECT_EQ(parse_amount("--parameters", "7.5B", "plan"), 7'500'000'000);
  for (const char* text : {"", "0", "M", "-1", "1.2.3", "1e6", "99999B"}) {
    EXPECT_THROW(parse_amount("--parameters", text, "plan"), std::invalid_argument) << text;
  }
}

}  // namespace
}  // namespace gossamer
