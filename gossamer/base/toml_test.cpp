#include "gossamer/base/toml.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdio>
#include <fstream>
#include <functional>
#include <limits>
#include <stdexcept>

#include "gossamer/base/errors.h"
#include "gossamer/base/test_errors.h"

namespace gossamer {
namespace {

constexpr std::string_view kRecipe = R"(name = "tiny"
steps = 20
rate = 0.5
shuffle = true
link = "20Mbit/s"
delay = "200us"
bucket = "4MiB"
seeds = [1, 2, 3]
mixed = [1, "two"]

[model]
width = 64

[[host]]
workers = 2
[[host]]
workers = 3
)";

TomlTable recipe() { return parse_toml(kRecipe, "recipe.toml"); }

TEST(Toml, ReadsEveryType) {
  std::string name;
  int steps = 0;
  double rate = 0;
  bool shuffle = false;
  std::vector<std::int64_t> seeds;
  EXPECT_TRUE(recipe().read("name", name));
  EXPECT_TRUE(recipe().read("steps", steps));
  EXPECT_TRUE(recipe().read("rate", rate));
  EXPECT_TRUE(recipe().read("shuffle", shuffle));
  EXPECT_TRUE(recipe().read("seeds", seeds));
  EXPECT_EQ(name, "tiny");
  EXPECT_EQ(steps, 20);
  EXPECT_EQ(rate, 0.5);
  EXPECT_TRUE(shuffle);
  EXPECT_EQ(seeds, (std::vector<std::int64_t>{1, 2, 3}));
}

TEST(Toml, ReadsQuantitiesWithUnits) {
  double bytes_per_s = 0, seconds = 0;
  std::int64_t bytes = 0;
  EXPECT_TRUE(recipe().read_rate("link", bytes_per_s));
  EXPECT_TRUE(recipe().read_duration("delay", seconds));
  EXPECT_TRUE(recipe().read_bytes("bucket", bytes));
  EXPECT_DOUBLE_EQ(bytes_per_s, 2.5e6);
  EXPECT_DOUBLE_EQ(seconds, 2e-4);
  EXPECT_EQ(bytes, 4 * 1024 * 1024);
}

TEST(Toml, IntegersCountAsNumbers) {
  double steps = 0;
  EXPECT_TRUE(recipe().read("steps", steps));
  EXPECT_EQ(steps, 20);
}

TEST(Toml, AnAbsentKeyLeavesTheDefault) {
  double rate = 7;
  std::vector<std::string> names{"kept"};
  EXPECT_FALSE(recipe().read("absent", rate));
  EXPECT_FALSE(recipe().read("absent", names));
  EXPECT_FALSE(recipe().table("absent").has_value());
  EXPECT_TRUE(recipe().tables("absent").empty());
  EXPECT_EQ(rate, 7);
  EXPECT_EQ(names, std::vector<std::string>{"kept"});
}

TEST(Toml, InnerTablesOutliveTheOuterOne) {
  const TomlTable model = *recipe().table("model");
  const std::vector<TomlTable> hosts = recipe().tables("host");
  int width = 0, workers = 0;
  EXPECT_TRUE(model.read("width", width));
  EXPECT_EQ(width, 64);
  ASSERT_EQ(hosts.size(), 2u);
  EXPECT_TRUE(hosts[1].read("workers", workers));
  EXPECT_EQ(workers, 3);
}

TEST(Toml, KeysAreSorted) {
  EXPECT_EQ(recipe().table("model")->keys(), std::vector<std::string>{"width"});
  EXPECT_TRUE(recipe().has("steps"));
  EXPECT_FALSE(recipe().has("step"));
}

TEST(Toml, AnUnknownKeyNamesPlaceNearestAndValid) {
  constexpr std::string_view kValid[] = {"depth", "widths"};
  EXPECT_EQ(message_of([&] { recipe().table("model")->allow_only(kValid); }),
            "[recipe.toml:12:1] unknown key, got 'width'; did you mean 'widths'? "
            "valid: depth, widths");
}

TEST(Toml, OnlyValidKeysPass) {
  constexpr std::string_view kValid[] = {"depth", "width"};
  EXPECT_NO_THROW(recipe().table("model")->allow_only(kValid));
}

TEST(Toml, AWrongTypeNamesPlaceKeyExpectedAndGot) {
  int value = 0;
  bool flag = false;
  EXPECT_EQ(message_of([&] { recipe().read("name", value); }),
            "[recipe.toml:1:8] 'name' must be an integer, got text 'tiny'");
  EXPECT_EQ(message_of([&] { recipe().read("rate", value); }),
            "[recipe.toml:3:8] 'rate' must be an integer, got number 0.5");
  EXPECT_EQ(message_of([&] { recipe().read("model", flag); }),
            "[recipe.toml:11:1] 'model' must be true or false, got a table");
  EXPECT_EQ(message_of([&] { recipe().tables("seeds"); }),
            "[recipe.toml:8:10] 'seeds' must be an array of tables, got integer 1");
}

TEST(Toml, AListWithOneWrongElementIsRefusedAndChangesNothing) {
  std::vector<std::int64_t> values{9};
  EXPECT_EQ(message_of([&] { recipe().read("mixed", values); }),
            "[recipe.toml:9:13] 'mixed' must be an array of integers, got text 'two'");
  EXPECT_EQ(values, std::vector<std::int64_t>{9});
}

TEST(Toml, AnIntegerThatDoesNotFitIsRefused) {
  int value = 5;
  const TomlTable table = parse_toml("big = 3000000000", "x.toml");
  EXPECT_THROW(table.read("big", value), std::invalid_argument);
  EXPECT_EQ(value, 5);
}

TEST(Toml, ABadUnitCarriesThePlace) {
  double rate = 0;
  const std::string message =
      message_of([&] { parse_toml("\nlink = '20Mbi/s'", "c.toml").read_rate("link", rate); });
  EXPECT_EQ(message.rfind("[c.toml:2:8] unknown unit in '20Mbi/s'", 0), 0u) << message;
}

TEST(Toml, AMissingKeyNamesTheTable) {
  EXPECT_NO_THROW(recipe().require("steps"));
  EXPECT_EQ(message_of([] { recipe().table("model")->require("depth"); }),
            "[recipe.toml:11:1] a required key is missing; add 'depth' to this table");
}

TEST(Toml, ASyntaxErrorNamesThePlace) {
  const std::string message = message_of([] { parse_toml("a = 1\nb = \n", "x.toml"); });
  EXPECT_EQ(message.rfind("[x.toml:2:", 0), 0u) << message;
  EXPECT_NE(message.find("not valid TOML"), std::string::npos) << message;
  EXPECT_THROW(parse_toml("a = 1\na = 2", "x.toml"), std::invalid_argument);
}

// Undefined in toml++ up to 3.4.
TEST(Toml, OtherLettersWhereWhitespaceIsExpectedAreHarmless) {
  std::string text;
  EXPECT_TRUE(parse_toml("s = \"\"\"\\\n\xc2\xa7\"\"\"", "x.toml").read("s", text));
  EXPECT_EQ(text, "\xc2\xa7");
  EXPECT_THROW(parse_toml("\xc3\xa9", "x.toml"), std::invalid_argument);
  EXPECT_THROW(parse_toml("\xcc\xaa", "x.toml"), std::invalid_argument);
}

TEST(Toml, WhatBeginsNoKeyIsRefusedInsideOfBracketsToo) {
  for (const char* text : {"[?]", "[[?]]", "[ ,", "[\x01]"}) {
    EXPECT_THROW(parse_toml(text, "a.toml"), std::invalid_argument) << text;
  }
}

TEST(Toml, LoadsAFile) {
  const std::string path = testing::TempDir() + "toml_test_recipe.toml";
  std::ofstream(path) << "steps = 3\n";
  int steps = 0;
  EXPECT_TRUE(load_toml(path).read("steps", steps));
  EXPECT_EQ(steps, 3);
  std::ofstream(path).close();
  EXPECT_TRUE(load_toml(path).keys().empty());
  std::remove(path.c_str());
}

TEST(Toml, AHugeFileIsRefused) {
  const std::string path = testing::TempDir() + "toml_test_huge.toml";
  std::ofstream(path) << "a = 1\n" << std::string(5'000'000, '#');
  EXPECT_EQ(message_of([&] { load_toml(path); }),
            "[" + path +
                "] the file is longer than the 4000000 bytes that such a file can have, got "
                "5000006; check the path or use another copy");
  std::remove(path.c_str());
}

TEST(Toml, AFileThatCannotBeReadIsAnIoError) {
  EXPECT_THROW(load_toml("no/such/recipe.toml"), IoError);
  EXPECT_THROW(load_toml(testing::TempDir()), IoError);
}

TEST(Toml, APipeIsAnIoErrorAndNoWait) {
  const std::string path = testing::TempDir() + "toml_test_pipe.toml";
  ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
  EXPECT_EQ(message_of([&] { load_toml(path); }),
            "[" + path + "] is not a regular file; check the path");
  std::remove(path.c_str());
}

std::string repeated(const std::string& part, int times) {
  std::string text;
  for (int i = 0; i < times; ++i) text += part;
  return text;
}

bool ends_with(const std::string& text, const std::string& end) { return text.ends_with(end); }

TEST(Toml, AKeyOfAMillionLevelsIsRefusedBeforeItIsParsed) {
  const std::string deep = repeated("a.", 1'000'000) + "a";
  const std::string complaint =
      "a key may have up to 32 dots, got more; name fewer tables in it, or put it in quotes if the "
      "dots are its own";
  const auto refused = [&](const std::string& text) {
    return message_of([&] { parse_toml(text, "x"); });
  };
  EXPECT_EQ(refused(deep + " = 1"), "[x:1:66] " + complaint);
  EXPECT_EQ(refused("\n[" + deep + "]\n"), "[x:2:67] " + complaint);
  EXPECT_EQ(refused("[[" + deep + "]]"), "[x:1:68] " + complaint);
  EXPECT_EQ(refused("a = { " + deep + " = 1 }"), "[x:1:72] " + complaint);
  EXPECT_EQ(refused("a = [{ b = 1, " + deep + " = 1 }]"), "[x:1:80] " + complaint);
  for (const std::string part : {"\"a\".", "'a'.", "\"\".", "a . ", "\"\\\".a\"."}) {
    EXPECT_PRED2(ends_with, refused(repeated(part, 1'000'000) + "a = 1"), complaint) << part;
  }
  for (const std::string before : {"s = \"\"\"\"a\"\"\"\"\"\n", "s = \"\"\n", "s = '''\n\\'''\n",
                                   "s = \"\\\\\" # '\n", "s = '\"'\n", "\"s\" = \"#\"\n"}) {
    EXPECT_PRED2(ends_with, refused(before + deep + " = 1"), complaint) << before;
  }
}

TEST(Toml, DotsInTextsCommentsAndNumbersAreFree) {
  const std::string dots(1000, '.');
  const std::string text = "a = \"" + dots + "\" # " + dots + "\n# " + dots + "\n\"" + dots +
                           "\" = '" + dots + "'\nb = \"\"\"\n\"\"" + dots + "\"\"\"\"\"\nc = [" +
                           repeated("0.5, ", 1000) + "]\n" + repeated("d.", 32) + "e = 1\n";
  EXPECT_EQ(parse_toml(text, "x").keys().size(), 5u);
  EXPECT_THROW(parse_toml(repeated("d.", 33) + "e = 1\n", "x"), std::invalid_argument);
}

}  // namespace
}  // namespace gossamer
