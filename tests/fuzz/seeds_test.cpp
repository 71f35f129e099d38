// Every seed goes through its target, and so do seeds that are changed here and there, always in
// the same way; see Note [Fuzz targets].

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "gossamer/base/rng.h"
#include "tests/fuzz/targets.h"

namespace gossamer {

void PrintTo(const FuzzTarget& target, std::ostream* out) { *out << target.name; }

namespace {

constexpr int kChanged = 600;  ///< inputs per target

struct FuzzSeed {
  std::string name;
  std::string bytes;
};

std::vector<FuzzSeed> seeds_of(std::string_view target) {
  std::vector<FuzzSeed> seeds;
  for (const auto& entry :
       std::filesystem::directory_iterator(std::filesystem::path("tests/fuzz") / target)) {
    std::ifstream file(entry.path(), std::ios::binary);
    seeds.push_back({entry.path().filename(), {std::istreambuf_iterator<char>(file), {}}});
  }
  std::ranges::sort(seeds, {}, &FuzzSeed::name);
  return seeds;
}

constexpr std::string_view kPieces[] = {"[[hosts]]",
                                        "[target]",
                                        "= -1",
                                        "= 0",
                                        "9223372036854775807",
                                        "18446744073709551616",
                                        "1e999",
                                        "nan",
                                        "inf",
                                        "\"\"",
                                        "\"1e308TB/s\"",
                                        "\\u0000",
                                        "{\"a\":[",
                                        "'''",
                                        "# \xff\xfe",
                                        "\n\n",
                                        "[[[[[[[[[",
                                        "\"unlimited\"",
                                        "65536",
                                        "true",
                                        "1979-05-27",
                                        "a.b.c",
                                        ",",
                                        ":",
                                        "=",
                                        "-",
                                        "@",
                                        "\xff\xff\xff\xff\xff\xff\xff\x7f",
                                        "ssog",
                                        "\r",
                                        "\x1b[31m"};

std::string changed(const std::vector<FuzzSeed>& seeds, Rng& rng) {
  std::string text = seeds[rng.below(seeds.size())].bytes;
  for (auto changes = 1 + rng.below(3); changes > 0; --changes) {
    const std::size_t at = rng.below(text.size() + 1);
    const std::size_t length = std::min<std::size_t>(rng.below(12), text.size() - at);
    const std::string& other = seeds[rng.below(seeds.size())].bytes;
    switch (rng.below(7)) {
      case 0:
        text.erase(at, length);
        break;
      case 1:
        text.insert(at, kPieces[rng.below(std::size(kPieces))]);
        break;
      case 2:
        text.replace(at, length, kPieces[rng.below(std::size(kPieces))]);
        break;
      case 3:
        text.insert(at, text.substr(at, length));
        break;
      case 4:
        text.replace(at, text.size() - at, other.substr(std::min(at, other.size())));
        break;
      case 5:
        if (at < text.size()) text[at] = static_cast<char>(text[at] ^ (1 << rng.below(8)));
        break;
      default:
        if (at < text.size()) text[at] = static_cast<char>(rng.below(256));
    }
  }
  return text;
}

class Fuzz : public testing::TestWithParam<FuzzTarget> {
 protected:
  /// Leaves an input that fails as a file for tools/fuzz.sh.
  bool run(const std::string& input, const std::string& what) {
    try {
      return GetParam().run(std::as_bytes(std::span(input)));
    } catch (const std::exception& error) {
      const std::string path = testing::TempDir() + std::string(GetParam().name) + ".finding";
      std::ofstream(path, std::ios::binary) << input;
      ADD_FAILURE() << what << ": " << error.what() << "; the input is " << path;
      return false;
    }
  }
};

TEST_P(Fuzz, SeedsAndChangedSeeds) {
  const std::vector<FuzzSeed> seeds = seeds_of(GetParam().name);
  ASSERT_FALSE(seeds.empty());
  int taken = 0;
  int refused = 0;
  for (const FuzzSeed& seed : seeds) ++(run(seed.bytes, seed.name) ? taken : refused);
  Rng rng(11);
  for (int k = 0; k < kChanged && !HasFailure(); ++k) {
    const std::string input = changed(seeds, rng);
    ++(run(input, "changed seed " + std::to_string(k)) ? taken : refused);
  }
  EXPECT_GT(taken, 0);
  EXPECT_GT(refused, 0);
  std::printf("%d taken, %d refused\n", taken, refused);
}

std::string name_of_case(const testing::TestParamInfo<FuzzTarget>& info) {
  return std::string(info.param.name);
}

INSTANTIATE_TEST_SUITE_P(Targets, Fuzz, testing::ValuesIn(fuzz_targets()), name_of_case);

}  // namespace
}  // namespace gossamer
