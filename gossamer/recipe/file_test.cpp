#include "gossamer/recipe/file.h"

#include <gtest/gtest.h>

#include <iterator>
#include <string>

#include "gossamer/base/rng.h"

namespace gossamer {
namespace {

Recipe written_and_read(const Recipe& recipe) {
  Recipe read;
  read_recipe_text(to_toml(recipe), "recipe.toml", read);
  return read;
}

TEST(Recipe, TextsOfAnyCharactersComeBack) {
  constexpr std::uint64_t kSeed = 20;
  Rng rng(kSeed);
  const std::string parts[] = {"\"",
                               "\\",
                               "'",
                               "#",
                               "\n",
                               "\r",
                               "\t",
                               "\x1b",
                               "\x7f",
                               "\xc2\x9b",
                               "\xe2\x80\xa8",
                               "\xf0\x9f\x90\x9d",
                               "u0041",
                               "=",
                               "]",
                               "a",
                               " ",
                               "."};
  for (int round = 0; round < 300; ++round) {
    Recipe recipe;
    for (int n = static_cast<int>(rng.below(12)); n > 0; --n) {
      recipe.data.data += parts[rng.below(std::size(parts))];
      recipe.data.suffixes.push_back(parts[rng.below(std::size(parts))] + recipe.data.data);
    }
    for (char control = 1; control < 0x20 && round == 0; ++control) recipe.data.target += control;
    const Recipe read = written_and_read(recipe);
    EXPECT_EQ(read.data.data, recipe.data.data) << "seed " << kSeed << ", round " << round;
    EXPECT_EQ(read.data.target, recipe.data.target) << "seed " << kSeed << ", round " << round;
    EXPECT_EQ(read.data.suffixes, recipe.data.suffixes) << "seed " << kSeed << ", round " << round;
  }
}

}  // namespace
}  // namespace gossamer
