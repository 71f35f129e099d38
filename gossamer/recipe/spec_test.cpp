#include "gossamer/recipe/spec.h"

#include <gtest/gtest.h>

#include <iterator>
#include <string>

#include "gossamer/base/rng.h"

namespace gossamer {
namespace {

TrainSpec written_and_read(const TrainSpec& spec) {
  TrainSpec read;
  read_recipe_text(to_toml(spec), "recipe.toml", read);
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
    TrainSpec spec;
    for (int n = static_cast<int>(rng.below(12)); n > 0; --n) {
      spec.data += parts[rng.below(std::size(parts))];
      spec.suffixes.push_back(parts[rng.below(std::size(parts))] + spec.data);
    }
    for (char control = 1; control < 0x20 && round == 0; ++control) spec.target += control;
    const TrainSpec read = written_and_read(spec);
    EXPECT_EQ(read.data, spec.data) << "seed " << kSeed << ", round " << round;
    EXPECT_EQ(read.target, spec.target) << "seed " << kSeed << ", round " << round;
    EXPECT_EQ(read.suffixes, spec.suffixes) << "seed " << kSeed << ", round " << round;
  }
}

}  // namespace
}  // namespace gossamer
