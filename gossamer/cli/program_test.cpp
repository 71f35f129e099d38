#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <string>

#include "gossamer/base/json.h"
#include "gossamer/cli/program_run.h"

namespace gossamer {
namespace {

namespace fs = std::filesystem;
using program_run::content_of;
using program_run::golden;
using program_run::Result;
using program_run::run;

/// Equal but for the last digits of numbers, which are the machine's.
void expect_alike(const Json& a, const Json& b) {
  if (a.is_number() && b.is_number()) {
    EXPECT_NEAR(a.get<double>(), b.get<double>(), 1e-12);
    return;
  }
  ASSERT_EQ(a.type(), b.type());
  ASSERT_EQ(a.size(), b.size());
  if (!a.is_structured()) {
    EXPECT_EQ(a, b);
    return;
  }
  auto other = b.begin();
  for (auto it = a.begin(); it != a.end(); ++it, ++other) {
    EXPECT_TRUE(!a.is_object() || it.key() == other.key());
    expect_alike(*it, *other);
  }
}

struct Case {
  const char* file;
  const char* arguments;
};

TEST(Program, PrintsTheGoldenTables) {
  for (const Case& c : {
           Case{"topology_list.txt", "topology --list"},
           Case{"topology_aer_4x2.txt", "topology aer --hosts 4 --per-host 2"},
           Case{"topology_base_k_unequal.txt", "topology base_k --per-host 1,2,4 --degree 2"},
           Case{"topology_random.txt", "topology random --hosts 5 --seed 7"},
           Case{"topology_modified.txt",
                "topology one_peer_ring --hosts 6 --lazy --local-steps 2 --global-average 6"},
           Case{"topology_single.txt", "topology ring --hosts 1 --per-host 1"},
       }) {
    const Result result = run(c.arguments);
    EXPECT_EQ(result.code, 0) << c.arguments;
    EXPECT_EQ(result.err, "");
    EXPECT_EQ(result.out, golden(c.file, result.out)) << c.arguments;
  }
}

TEST(Program, PrintsTheGoldenJson) {
  for (const Case& c : {
           Case{"topology_aer_json.txt", "topology aer --hosts 4 --per-host 2 --json"},
           Case{"topology_exponential_json.txt", "topology exponential --hosts 6 --json"},
       }) {
    const Result result = run(c.arguments);
    EXPECT_EQ(result.code, 0);
    expect_alike(Json::parse(result.out), Json::parse(golden(c.file, result.out)));
  }
}

TEST(Program, GivesTheCanonicalNameForAnAlias) {
  const Result result = run("topology aer --json");
  EXPECT_EQ(Json::parse(result.out)["name"], "alternating_exponential_ring");
}

TEST(Program, FollowsTheMatricesOfAFileInEveryCommand) {
  const fs::path folder = fs::temp_directory_path() / ("gossamer-file-" + std::to_string(getpid()));
  fs::create_directories(folder);
  const std::string file = (folder / "weights.json").string();
  const Json printed = Json::parse(run("topology aer --hosts 3 --per-host 2 --json").out);
  std::ofstream(file) << printed;
  const Json again = Json::parse(run("topology " + file + " --json").out);
  EXPECT_EQ(again["name"], file);
  EXPECT_EQ(again["workers_per_host"], printed["workers_per_host"]);
  expect_alike(again["rounds"], printed["rounds"]);
  for (const char* command : {"simulate atc@", "lab run --steps 20 --trials 1 atc@"}) {
    const auto on = [&](const std::string& topology, const std::string& hosts) {
      return run(command + topology + " --per-host 2 --hosts " + hosts);
    };
    const Result result = on(file + ":lazy", "3");
    EXPECT_EQ(result.code, 0) << command << result.err;
    EXPECT_NE(result.out.find("weights.json:lazy"), std::string::npos) << result.out;
    EXPECT_NE(on(file, "2").err.find("weights.json is for 6 workers, got 4"), std::string::npos);
  }
  fs::remove_all(folder);
}

TEST(Program, RefusesWrongCommandLinesOnStderrWithCodeTwo) {
  const auto expect_refused = [](const std::string& arguments, const std::string& message) {
    const Result result = run(arguments);
    EXPECT_EQ(result.code, 2) << arguments;
    EXPECT_EQ(result.out, "") << arguments;
    EXPECT_NE(result.err.find(message), std::string::npos) << arguments << ": " << result.err;
  };
  expect_refused("topolgy", "[gossamer] unknown command, got 'topolgy'; did you mean 'topology'?");
  expect_refused("topology rign",
                 "[topology] unknown topology, got 'rign'; did you mean 'ring'? valid: complete");
  expect_refused("topology hypercube --hosts 3", "got 3; use 2 or 4 workers");
  expect_refused("topology ring --hots 3", "got '--hots'; did you mean '--hosts'?");
  expect_refused("topology ring --hosts 0", "--hosts");
  expect_refused("topology ring --hosts 99999999999", "--hosts");
  expect_refused("topology ring --per-host 1,0", "--per-host");
  expect_refused("topology ring --hosts 2 --per-host 1,2,3", "one for each of the 2 hosts");
  expect_refused("topology base_k --degree 0", "degree of at least 1");
  expect_refused("topology ring --json --svg -", "both want stdout");
  expect_refused("topology", "--list shows all");
}

TEST(Program, WritesPicturesAndFailsWithCodeOneWhereItCannot) {
  const Result printed = run("topology ring --svg -");
  EXPECT_EQ(printed.code, 0);
  EXPECT_EQ(printed.out.find("<svg "), 0u);
  const Result failed = run("topology ring --svg /no/such/folder/ring.svg");
  EXPECT_EQ(failed.code, 1);
  EXPECT_EQ(failed.out, "");
}

TEST(Program, SaysWhereItsOutputIsLost) {
  for (const char* arguments :
       {"--help", "--version", "man", "completion zsh", "topology --list", "topology ring",
        "topology aer --hosts 40 --json", "topology ring --svg -", "theory rates",
        "theory transient", "lab run --steps 2", "simulate ring --hosts 2 --parameters 1k",
        "plan --hosts 2 --parameters 1M --compute 10ms"}) {
    const Result result = run(std::string(arguments) + " >/dev/full");
    EXPECT_EQ(result.code, 1) << arguments;
    EXPECT_EQ(result.err,
              "[gossamer] cannot write to stdout; the output is not complete: free space where it "
              "goes\n")
        << arguments;
  }
}

TEST(Program, MoreWorkersThanThereCanBeAreOneClearMessage) {
  for (const char* command :
       {"topology ring", "lab run ring", "simulate ring", "theory transient"}) {
    for (const char* hosts : {" --hosts 65537", " --hosts 999999999", " --per-host 99999999",
                              " --per-host 2147483647,2147483647"}) {
      const Result result = run(std::string(command) + hosts);
      EXPECT_EQ(result.code, 2) << command << hosts;
      EXPECT_NE(result.err.find("there may be up to 65536 workers, got "), std::string::npos)
          << command << hosts << ": " << result.err;
    }
  }
}

TEST(Program, HelpsWithoutArgumentsAndKnowsItsVersion) {
  const Result help = run("");
  EXPECT_EQ(help.code, 0);
  EXPECT_EQ(help.out, run("--help").out);
  EXPECT_NE(help.out.find("topology"), std::string::npos);
  const Result topology = run("topology --help");
  EXPECT_EQ(topology.code, 0);
  EXPECT_NE(topology.out.find("--per-host"), std::string::npos);
  EXPECT_EQ(run("--version").out.find("gossamer "), 0u);
}

}  // namespace
}  // namespace gossamer
