#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>

#include "gossamer/base/json.h"
#include "gossamer/cli/program_run.h"

namespace gossamer {
namespace {

using program_run::content_of;
using program_run::golden;
using program_run::Result;
using program_run::run;

struct MethodCase {
  const char* name;
  const char* arguments;
};

TEST(SimulateCommand, PrintsTheGoldenTables) {
  for (const MethodCase& c : {
           MethodCase{"simulate_default.txt", "simulate"},
           MethodCase{
               "simulate_events.txt",
               "simulate ring one_peer_ring:skip --hosts 6 --slow 3:2.5 --link-change 1:0.5@2s"},
           MethodCase{"simulate_lost.txt", "simulate aer --lose 2@1s"},
       }) {
    const Result result = run(c.arguments);
    EXPECT_EQ(result.code, 0) << c.arguments << result.err;
    EXPECT_EQ(result.err, "");
    EXPECT_EQ(result.out, golden(c.name, result.out)) << c.arguments;
  }
}

// 4 bytes per parameter, of which a host sends half per step, at 1514/1448 of 1e6 bytes/s.
TEST(SimulateCommand, JsonHasTheTimeOfTheBytes) {
  const Result result = run(
      "simulate aer --json --parameters 1448k --compute 1s --link-rate 8Mbit/s --link-latency 0s "
      "--inside-rate unlimited");
  ASSERT_EQ(result.code, 0) << result.err;
  const Json json = Json::parse(result.out);
  const Json& aer = json["methods"][0];
  EXPECT_EQ(aer["bytes_per_host_per_step"], std::vector<double>(4, 2 * 1448e3));
  EXPECT_NEAR(aer["step_s"].get<double>(), 2 * 1514e-3, 1e-6);
  EXPECT_NEAR(aer["model_step_s"].get<double>(), 2 * 1514e-3, 1e-6);
  EXPECT_NEAR(aer["compute_s"].get<double>(), 1, 1e-6);
}

TEST(SimulateCommand, EqualSeedsGiveEqualAnswers) {
  const std::string line = "simulate aer --deviation 50ms --json --seed ";
  EXPECT_EQ(run(line + "4").out, run(line + "4").out);
  EXPECT_NE(run(line + "4").out, run(line + "5").out);
}

TEST(SimulateCommand, ReadsFilesAndWritesATrace) {
  const std::filesystem::path folder = testing::TempDir();
  std::ofstream(folder / "cluster.toml") << "[[hosts]]\ncount = 2\nworkers = 2\nspeed = 2\n";
  std::ofstream(folder / "workload.toml") << "parameters = 100\ncompute = \"10ms\"\n";
  const Result result =
      run("simulate aer:bf16 --json --steps 2 --warm-up 0 --cluster " +
          (folder / "cluster.toml").string() + " --workload " +
          (folder / "workload.toml").string() + " --trace " + (folder / "trace.json").string());
  ASSERT_EQ(result.code, 0) << result.err;
  EXPECT_NEAR(Json::parse(result.out)["methods"][0]["step_s"].get<double>(), 5e-3, 1e-9);
  const Json trace = Json::parse(content_of(folder / "trace.json"));
  int forwards = 0;
  for (const Json& event : trace["traceEvents"]) forwards += event["name"] == "forward" ? 1 : 0;
  EXPECT_EQ(forwards, 4 * 2);
  EXPECT_EQ(trace["otherData"], Json({{"method", "aer:bf16"}, {"steps", 2}, {"warm_up", 0}}));
}

TEST(SimulateCommand, MistakesAreOneClearMessage) {
  const program_run::Complaint cases[] = {
      {"simulate rign", "[method] unknown method, got 'rign'; did you mean 'ring'?"},
      {"simulate aer --stepz 4", "[simulate] unknown argument, got '--stepz'; did you mean"},
      {"simulate aer --slow 9:2", "[simulate] there is no worker 9; there are 0 to 3"},
      {"simulate aer --slow 1", "[simulate] --slow takes WORKER:FACTOR, got '1'"},
      {"simulate aer --slow 1:-2", "[simulate] --slow takes a factor from 0 to 1e6"},
      {"simulate aer --link-change 1:2", "[simulate] --link-change takes HOST:FACTOR@TIME"},
      {"simulate aer --lose 1@4", "[simulate --lose] the unit is missing, got '4'"},
      {"simulate aer --parameters 0", "[simulate] --parameters takes a number from 1 to 1e13"},
      {"simulate aer --parameters 99999B", "[simulate] --parameters takes a number"},
      {"simulate aer --compute 99999h", "[workload] the mean compute time must be in"},
      {"simulate aer --link-rate 0B/s", "[cluster] the rate of a link must be positive"},
      {"simulate aer --hosts 99999", "[simulate] there may be up to 65536 workers, got 99999"},
      {"simulate aer --per-host 1,2 --hosts 3", "[simulate] --per-host must have one number"},
      {"simulate aer ring --trace x.json", "[simulate] --trace is for one method, got 2"},
      {"simulate aer --cluster nowhere.toml", "[nowhere.toml] cannot be read"},
      {"simulate aer --cluster x.toml --hosts 3", "[simulate] --cluster and --hosts contradict"},
  };
  expect_complaints(cases);
}

}  // namespace
}  // namespace gossamer
