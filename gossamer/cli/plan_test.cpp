#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <string>

#include "gossamer/base/json.h"
#include "gossamer/cli/program_run.h"

namespace gossamer {
namespace {

using program_run::golden;
using program_run::Result;
using program_run::run;

TEST(PlanCommand, PrintsTheGoldenTables) {
  const std::pair<const char*, const char*> cases[] = {
      {"plan_slow.txt", "plan --hosts 4 --per-host 2 --link-rate 1Gbit/s --show 4"},
      {"plan_fast.txt", "plan --hosts 4 --link-rate 25Gbit/s --show 5"},
  };
  for (const auto& [name, arguments] : cases) {
    const Result result = run(arguments);
    EXPECT_EQ(result.code, 0) << result.err;
    EXPECT_EQ(result.err, "");
    EXPECT_EQ(result.out, golden(name, result.out)) << arguments;
  }
}

TEST(PlanCommand, FlagsGoBeforeTheFile) {
  const std::filesystem::path folder = testing::TempDir();
  std::ofstream(folder / "workload.toml") << "parameters = 25_000_000\ncompute = \"250ms\"\n"
                                          << "[target]\nsteps = 500\nsteps_ratio = 1.1\n";
  const std::string line = "plan --json --workload " + (folder / "workload.toml").string();
  const auto first_of = [](const Result& result) {
    const Json json = Json::parse(result.out);
    return json["candidates"][0];
  };
  const Json read = first_of(run(line));
  EXPECT_NEAR(read["total_s"].get<double>(),
              500 * read["steps_ratio"].get<double>() * read["step_s"].get<double>(), 1e-6);
  EXPECT_NEAR(read["steps_ratio"].get<double>(), 1.1, 0.011);
  const Json flagged = first_of(run(line + " --steps-ratio 1.3 --target-steps 50"));
  EXPECT_NEAR(flagged["steps_ratio"].get<double>(), 1.3, 0.011);
  EXPECT_NEAR(flagged["total_s"].get<double>() / read["total_s"].get<double>(), 0.1 * 1.3 / 1.1,
              1e-3);
}

// Speed-ups of the poster in points, ratios of the paper's and the lecture's times.
TEST(PlanCommand, PublishedCasesAreNearTheModel) {
  const Json problems = Json::parse(run("plan --published --json").out);
  int points = 0;
  for (const Json& problem : problems) {
    EXPECT_LE(problem["constants"].size(), 3u) << problem["name"];
    for (const Json& point : problem["points"]) {
      EXPECT_LT(std::abs(point["residual"].get<double>()), 0.16) << point;
      ++points;
    }
  }
  EXPECT_EQ(points, 8 + 18 + 4 + 12);
  const std::string table = run("plan --published").out;
  EXPECT_NE(table.find("one_peer_exponential"), std::string::npos);
  EXPECT_NE(table.find("1.5 h"), std::string::npos);
}

TEST(PlanCommand, MistakesAreOneClearMessage) {
  const std::pair<const char*, const char*> cases[] = {
      {"plan --steps-ratio 0", "[plan] --steps-ratio"},
      {"plan --optimizer lion", "[plan] unknown value of --optimizer, got 'lion'"},
      {"plan --clusters x.toml",
       "[plan] unknown argument, got '--clusters'; did you mean '--cluster'"},
      {"plan --workload nowhere.toml", "[nowhere.toml] cannot be read"},
  };
  for (const auto& [arguments, beginning] : cases) {
    const Result result = run(arguments);
    EXPECT_NE(result.code, 0) << arguments;
    EXPECT_EQ(result.out, "") << arguments;
    EXPECT_TRUE(result.err.starts_with(beginning)) << arguments << "\n" << result.err;
    EXPECT_EQ(std::ranges::count(result.err, '\n'), 1) << result.err;
  }
}

}  // namespace
}  // namespace gossamer
