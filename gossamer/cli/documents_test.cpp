// The lists in the documentation against the tables.
#include <gtest/gtest.h>

#include <string>

#include "gossamer/algo/choices.h"
#include "gossamer/algo/pattern.h"
#include "gossamer/base/codec.h"
#include "gossamer/cli/program_run.h"
#include "gossamer/graph/topology.h"

namespace gossamer {
namespace {

/// The row of a table of the README that begins with this word.
std::string readme_row(const std::string& word) {
  const std::string text = program_run::content_of("README.md");
  const std::size_t begin = text.find("\n| " + word + " | ");
  EXPECT_NE(begin, text.npos) << word;
  return text.substr(begin + 1, text.find('\n', begin + 1) - begin - 1);
}

void expect_listed(const std::string& row, std::string_view name) {
  bool is_there = false;
  for (const char* end : {",", ";", " (", " |", ":"}) {
    is_there = is_there || row.find(" " + std::string(name) + end) != row.npos;
  }
  EXPECT_TRUE(is_there) << name << " is not in the README: " << row;
}

TEST(Readme, ListsEveryRowOfTheTables) {
  for (const Topology& each : topologies()) expect_listed(readme_row("topology"), each.name);
  for (const Pattern& each : patterns()) expect_listed(readme_row("pattern"), each.name);
  for (const auto each : optimizer_choices()) expect_listed(readme_row("optimizer"), each);
  for (const CodecFacts& each : kCodecs) expect_listed(readme_row("codec"), each.name);
}

TEST(Methods, HasALineForEveryPattern) {
  const std::string text = program_run::content_of("docs/methods.md");
  for (const Pattern& each : patterns()) {
    EXPECT_NE(text.find("\n| " + std::string(each.name) + " | "), text.npos) << each.name;
  }
}

}  // namespace
}  // namespace gossamer
