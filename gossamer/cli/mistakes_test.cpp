#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>

#include "gossamer/cli/program_run.h"

namespace gossamer {
namespace {

using program_run::golden;
using program_run::Result;
using program_run::run;

/// Mistakes that people make; each is answered by one line with place, fault, value and remedy.
constexpr const char* kMistakes[] = {
    // Commands.
    "doctr",
    "help topolgy",
    "lab runn",
    "completion tcsh",
    // Flags.
    "topology ring --verbose",
    "topology ring --hots 3",
    "topology ring --nodes 4",
    "simulate ring --bandwidth 1Gbit/s",
    "topology ring extra",
    "topology ring --hosts",
    "topology ring --hosts 2 --hosts 3",
    // Units and numbers.
    "simulate ring --link-rate 1Gbps",
    "simulate ring --link-rate 1Gb/s",
    "simulate ring --link-rate 10GBps",
    "simulate ring --link-rate 100mbit",
    "simulate ring --link-rate 1",
    "simulate ring --link-rate fast",
    "plan --compute 250",
    "simulate ring --compute 250msec",
    "simulate ring --link-latency 1µs",
    "plan --parameters 1e6",
    "simulate ring --parameters 25MB",
    "topology ring --hosts four",
    "topology ring --degree 1.5",
    "simulate ring --steps 0",
    "lab transient atc@ring --sizes 12,x",
    "lab run atc@ring:lr=abc",
    // Names.
    "simulate rnig",
    "simulate ring:fp16",
    "plan --optimizer lamb",
    "lab run cta@ring",
    "lab run --optimizer adamv",
    "lab run atc",
    "lab figure nosuch",
    // A file whose workers never mix: two pairs.
    "simulate atc@apart.json --hosts 4",
    "lab run atc@apart.json --hosts 4",
    "plan atc@apart.json --hosts 4",
    // Rows of tables that stand in for something.
    "lab run --optimizer none",
    "lab run atc@ring:optimizer=none",
    // Flags that contradict each other, or that nothing reads.
    "topology ring --hosts 2 --per-host 1,2,3",
    "plan --hosts 4 --per-host 1,2",
    "lab run atc@ring --hosts 4 --per-host 1,2",
    "plan --cluster a.toml --hosts 4",
    "topology ring --json --svg -",
    "lab run atc@ring --json --csv",
    "lab run atc@ring --images a.gz",
    "lab figure one two",
    "simulate ring aer --trace a.json",
    // Workers and hosts that are not there.
    "simulate ring --slow 9:2",
    "simulate ring --slow 2",
    "simulate ring --lose 5@3s",
    "simulate ring --link-change 7:0.5@1s",
    // Files that are not there.
    "plan --cluster nosuch.toml",
    "plan --workload nosuch.toml",
    "lab run atc@ring --problem images --images nosuch.gz --labels nosuch.gz",
    // What is missing.
    "topology --hosts 4",
    "lab figure",
};

TEST(Mistakes, AreAnsweredInOneLineWithCodeTwo) {
  std::ofstream("apart.json") << R"({"rounds": [{"groups": [[0, 1], [2, 3]]}]})";
  std::string answers;
  for (const char* arguments : kMistakes) {
    const Result result = run(arguments);
    EXPECT_EQ(result.code, 2) << arguments;
    EXPECT_EQ(result.out, "") << arguments;
    EXPECT_EQ(std::ranges::count(result.err, '\n'), 1) << arguments << ": " << result.err;
    EXPECT_EQ(result.err.substr(0, 1), "[") << result.err;
    EXPECT_NE(result.err.find("; "), std::string::npos) << "no remedy: " << result.err;
    answers += "$ gossamer " + std::string(arguments) + "\n" + result.err;
  }
  std::filesystem::remove("apart.json");
  EXPECT_EQ(answers, golden("mistakes.txt", answers));
}

}  // namespace
}  // namespace gossamer
