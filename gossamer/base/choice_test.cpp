#include "gossamer/base/choice.h"

#include <gtest/gtest.h>

#include <stdexcept>
#include <string>

namespace gossamer {
namespace {

enum class Size { small, large };

constexpr Choice<Size> kSizes[] = {
    {"small", Size::small}, {"large", Size::large}, {"big", Size::large}};

TEST(Choice, AWordStandsForItsValueAndAValueHasItsFirstWord) {
  EXPECT_EQ(choose(kSizes, "big", {"test", "size"}), Size::large);
  EXPECT_EQ(name_in(kSizes, Size::large), "large");
}

TEST(Choice, AnUnknownWordIsRefusedWithTheValidOnes) {
  try {
    choose(kSizes, "smal", {"test", "size"});
    FAIL();
  } catch (const std::invalid_argument& error) {
    EXPECT_EQ(std::string(error.what()),
              "[test] unknown size, got 'smal'; did you mean 'small'? valid: small, large, big");
  }
}

TEST(Choice, NamesAreListedAsAPersonWould) {
  EXPECT_EQ(listed({}), "");
  EXPECT_EQ(listed({"a"}), "a");
  EXPECT_EQ(listed({"a", "b"}), "a or b");
  EXPECT_EQ(listed({"a", "b", "c"}), "a, b or c");
  EXPECT_EQ(listed({"a", "b", "c"}, ", "), "a, b, c");
}

}  // namespace
}  // namespace gossamer
