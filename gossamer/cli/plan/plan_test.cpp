#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "gossamer/algo/choices.h"
#include "gossamer/base/json.h"
#include "gossamer/cli/program_run.h"
#include "gossamer/plan/workload_file.h"

namespace gossamer {
namespace {

using program_run::golden;
using program_run::Result;
using program_run::run;

TEST(PlanCommand, PrintsTheGoldenTables) {
  const std::pair<const char*, const char*> cases[] = {
      {"plan_slow.txt", "plan --hosts 4 --per-host 2 --link-rate 1Gbit/s --show 4"},
      {"plan_fast.txt", "plan --hosts 4 --link-rate 25Gbit/s --show 5"},
      {"plan_gpu.txt",
       "plan --gpu a100 --params 1B --tokens-per-step 64k --hosts 4 --per-host 8 --link 25Gbit/s "
       "--show 3"},
  };
  for (const auto& [name, arguments] : cases) {
    const Result result = run(arguments);
    EXPECT_EQ(result.code, 0) << result.err;
    EXPECT_EQ(result.err, "");
    EXPECT_EQ(result.out, golden(name, result.out)) << arguments;
  }
}

/// The layer plan cannot see the table of optimizers.
TEST(PlanCommand, AWorkloadMayNameEveryOptimizer) {
  for (const std::string_view name : optimizer_choices()) {
    const std::string text = "parameters = 1\ncompute = \"1s\"\n[target]\noptimizer = \"";
    EXPECT_EQ(parse_workload(text + std::string(name) + "\"", "w.toml").target.optimizer, name);
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

// 12 TFLOP at .4 of 312 TFLOP/s; hierarchical all-reduce: 2 · 3/4 of 4 GB per host, 1514/1448 of
// them on the wire, over 25 Gbit/s.
TEST(PlanCommand, AGpuAndTokensGiveTheComputeTime) {
  const std::string line =
      "plan --json --gpu a100 --hosts 4 --per-host 8 --link 25Gbit/s --params 1B ";
  const Json json = Json::parse(run(line + "--tokens-per-step 64k").out);
  const double compute_s = 6 * 1e9 * 2000 / (0.4 * 312e12);
  const double link_s = 1.5 * 4e9 * 1514 / 1448 / (25e9 / 8);
  ASSERT_EQ(json["needs"].size(), 9U);
  const Json& need = json["needs"][0];
  EXPECT_EQ(need["method"], "allreduce");
  EXPECT_NEAR(need["link_over_compute"].get<double>(), link_s / compute_s, 1e-3 * link_s);
  EXPECT_EQ(json["assumed"].size(), 7U) << json["assumed"];
  const auto needs_of = [&](const std::string& more) {
    return Json::parse(run(line + more).out)["needs"];
  };
  EXPECT_EQ(needs_of("--tokens-per-worker 2000"), json["needs"]);
  EXPECT_EQ(needs_of("--tokens-per-step 128k --utilisation 0.8"), json["needs"]);
  EXPECT_EQ(needs_of("--compute " + std::to_string(1e9 * compute_s) + "ns").size(), 9U);
}

TEST(PlanCommand, SaysWhereAPresetMayNotFit) {
  const std::string out =
      run("plan --gpu t4 --params 65M --tokens-per-step 25k --per-host 8 --link 100Gbit/s --show 1")
          .out;
  for (const char* text :
       {"x 781.3 tokens", "models of billions of parameters",
        "1.7 GB/s between two workers of a host for all but ddp", "12 GB/s of a thread that copies",
        "16 GB/s each way between two GPUs of a host for ddp: PCIe 3.0 x16", "--host-rate"}) {
    EXPECT_NE(out.find(text), std::string::npos) << text << "\n" << out;
  }
}

// 64 samples of 24.6 GFLOP at .3 of 71 TFLOP/s.
TEST(PlanCommand, OtherModelsGiveTheFlopOfASample) {
  const std::string line = "simulate ddp --json --gpu rtx3090 --hosts 1 --params 25.6M ";
  const double compute_s = 64 * 24.6e9 / (0.3 * 71e12);
  for (const char* samples : {"--samples-per-worker 64", "--samples-per-step 64"}) {
    const Json json = Json::parse(run(line + "--flop-per-sample 24.6G " + samples).out);
    EXPECT_NEAR(json["methods"][0]["step_s"].get<double>(), compute_s, 1e-6);
    EXPECT_EQ(json["assumed"][0], "a step of a worker: 24.6G FLOP x 64 samples");
  }
  const std::string tokens = run(line + "--tokens-per-worker 64").out;
  EXPECT_NE(tokens.find("a convolution uses a parameter many times"), std::string::npos);
}

/// Flags of the help that say "(default 8)", the first name of each.
std::vector<std::string> flags_with_defaults(const std::string& help) {
  std::vector<std::string> flags;
  std::istringstream lines(help);
  std::string flag;
  for (std::string line; std::getline(lines, line);) {
    const std::size_t begin = line.find("  --") == 0 ? 2 : line.npos;
    if (begin != line.npos) flag = line.substr(begin, line.find_first_of(" ,", begin) - begin);
    if (line.find("(default") != line.npos) flags.push_back(flag);
  }
  return flags;
}

TEST(PlanCommand, NamesEveryValueThatIsAssumed) {
  const std::string help = run("plan --help").out;
  // A host with one worker has nothing inside; what a GPU has stands in lines of its own.
  const std::string assumed = run("plan --json").out + run("plan --json --per-host 2").out +
                              run("plan --json --gpu a100 --compute 1s --per-host 2").out;
  const std::vector<std::string> flags = flags_with_defaults(help);
  EXPECT_GE(flags.size(), 12U) << help;
  for (const std::string& flag : flags) {
    if (flag == "--show" || flag == "--utilisation") continue;  // not of the answer; of tokens
    EXPECT_NE(assumed.find(flag), std::string::npos) << flag;
  }
}

TEST(PlanCommand, HasOneRowOfDdpAndSaysWhatHostsGive) {
  for (const char* methods : {"", "ddp ddp:bf16 allreduce:int8 "}) {
    const std::string line =
        std::string("plan ") + methods + "--hosts 4 --per-host 2 --link-rate 1Gbit/s --show 3";
    const std::string out = run(line).out;
    const std::size_t first = out.find("\n  ddp ");
    ASSERT_NE(first, out.npos) << out;
    EXPECT_EQ(out.find("\n  ddp ", first + 1), out.npos) << out;
    EXPECT_NE(out.find("One host alone (2 workers) takes 251 ms per step."), out.npos) << out;
    EXPECT_NE(out.find("gossip.save writes 2.4 GB: 12 bytes per parameter"), out.npos) << out;
    int rows = 0;
    const Json json = Json::parse(run(line + " --json").out);
    for (const Json& row : json["candidates"]) rows += row["method"] == "ddp";
    EXPECT_EQ(rows, 1);
  }
  EXPECT_EQ(run("plan --hosts 1 --per-host 2").out.find("One host alone"), std::string::npos);
}

TEST(PlanCommand, SaysWhichValuesAreExamples) {
  const Json json = Json::parse(run("plan --json --hosts 2 --parameters 5M --compute 10ms").out);
  ASSERT_EQ(json["assumed"].size(), 1U);
  EXPECT_EQ(
      json["assumed"][0],
      "examples, where you gave nothing: --per-host 1 --link-rate 1Gbit/s --link-latency 50us "
      "--buckets 8 --deviation 0s --update 0s --target-steps 10000 --optimizer adamw");
}

// Speed-ups of the poster in points, ratios of the paper's and the lecture's times.
TEST(PlanCommand, PublishedCasesAreNearTheModel) {
  const Json problems = Json::parse(run("plan --published --json").out);
  const std::vector<std::vector<double>> published = {
      {.2203, .4935, .6105},
      {.1061, .1482, .1501},
      {.0541, .0646},
      {166.1, 122.0, 195.5, 78.9, 188.5, 67.9},
      {73.0, 61.7, 54.8, 45.8, 51.5, 43.7},
      {372.5, 312.3, 225.5, 178.8, 167.3, 122.2},
      {278, 150, 1469, 567},
      {11.6, 6.3, 3.7, 2.2, 11.6, 6.5, 3.3, 1.8, 11.1, 5.7, 2.8, 1.5}};
  ASSERT_EQ(problems.size(), published.size());
  for (std::size_t k = 0; k < published.size(); ++k) {
    const Json& points = problems[k]["points"];
    EXPECT_LE(problems[k]["constants"].size(), 3u) << problems[k]["name"];
    EXPECT_FALSE(problems[k]["predicted"].empty()) << problems[k]["name"];
    ASSERT_EQ(points.size(), published[k].size()) << problems[k]["name"];
    for (std::size_t i = 0; i < points.size(); ++i) {
      EXPECT_EQ(points[i]["published"].get<double>(), published[k][i]) << points[i];
      EXPECT_LT(std::abs(points[i]["residual"].get<double>()), 0.16) << points[i];
      // Two numbers with two constants predict nothing.
      EXPECT_EQ(points[i].contains("from_others"), points.size() > 2) << points[i];
    }
  }
  EXPECT_EQ(problems[0]["hours"]["complete"], 5.80);
  EXPECT_EQ(problems[1]["hours"]["ring"], 10.92);
  EXPECT_EQ(problems[2]["hours"]["alternating_exponential_ring"], 9.70);
  EXPECT_EQ(problems[5]["points"][5]["name"], "aer 64");
}

TEST(PlanCommand, PublishedTellsFittedFromPredictedAndHasTheHours) {
  const std::string table = run("plan --published").out;
  for (const char* text :
       {"one_peer_exponential", "1.5 h", "5.80 h", "3.76 h", "2.90 h", "11.45 h", "10.92 h",
        "10.89 h", "9.80 h", "9.70 h", "3 numbers; fitted to them, 2: gamma",
        "omega of ring 0.5333", "from the others", "cannot say what separates"}) {
    EXPECT_NE(table.find(text), std::string::npos) << text;
  }
}

TEST(PlanCommand, MistakesAreOneClearMessage) {
  const program_run::Complaint cases[] = {
      {"plan --steps-ratio 0", "[plan] --steps-ratio"},
      {"plan --optimizer lion", "[plan] unknown value of --optimizer, got 'lion'"},
      {"plan --clusters x.toml",
       "[plan] unknown argument, got '--clusters'; did you mean '--cluster'"},
      {"plan --gpu a10o --compute 1s", "[gpu] unknown GPU, got 'a10o'; did you mean 'a100'"},
      {"plan --gpu a100", "[plan] --gpu computes tokens or samples"},
      {"plan --tokens-per-step 64k", "[plan] --tokens-per-step"},
      {"plan --gpu a100 --tokens-per-step many", "[plan] --tokens-per-step takes a number"},
      {"plan --gpu a100 --flop-per-sample 1G",
       "[plan] --flop-per-sample needs a number of samples"},
      {"plan --gpu a100 --samples-per-step 64", "[plan] samples need the FLOP of one"},
      {"plan ddp:int8", "[method] DDP's own hooks compress to bf16 or fp16"},
      {"plan --gpu a100 --utilisation 2", "[plan] --utilisation"},
      {"plan --workload nowhere.toml", "[nowhere.toml] cannot be read"},
  };
  expect_complaints(cases);
}

}  // namespace
}  // namespace gossamer
