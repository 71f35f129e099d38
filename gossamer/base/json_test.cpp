#include "gossamer/base/json.h"

#include <gtest/gtest.h>

#include <stdexcept>
#include <string>

namespace gossamer {
namespace {

std::string nested(int levels) {
  const auto count = static_cast<std::size_t>(levels);
  return std::string(count, '[') + std::string(count, ']');
}

std::string complaint_about(const std::string& text) {
  try {
    parse_json(text);
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return "";
}

TEST(ParseJson, TakesWhatIsNestedALittle) {
  EXPECT_EQ(parse_json("{\"a\": [1, {\"b\": null}]}").dump(), "{\"a\":[1,{\"b\":null}]}");
  EXPECT_EQ(parse_json(nested(8)).dump(), nested(8));
  EXPECT_EQ(parse_json(nested(9), 9).dump(), nested(9));
}

TEST(ParseJson, RefusesWhatIsNestedDeeply) {
  for (const int levels : {9, 200'000}) {
    EXPECT_EQ(complaint_about(nested(levels)), "JSON nested in more than 8 levels") << levels;
  }
  std::string text;
  for (int i = 0; i < 200'000; ++i) text += "{\"a\":";
  EXPECT_EQ(complaint_about(text), "JSON nested in more than 8 levels");
}

TEST(ParseJson, SaysWhatIsNoJson) {
  for (const char* text : {"", "{", "[1,]", "nul", "1e999", "\"\xff\""}) {
    EXPECT_TRUE(complaint_about(text).starts_with("not JSON: ")) << text;
  }
}

}  // namespace
}  // namespace gossamer
