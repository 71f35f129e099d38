#include "gossamer/plan/workload_file.h"

#include <gtest/gtest.h>

#include <stdexcept>

namespace gossamer {
namespace {

constexpr std::string_view kWhole = R"(
parameters = 1_000
buckets = 3
dtype = "f64"
compute = "250ms"
deviation = "20ms"
jitter = "lognormal"
forward_share = 0.25
update = "10ms"
ddp_link_share = 0.75
[target]
steps = 5000
global_batch = 256
noise_scale = 2e4
optimizer = "sgd"
steps_ratio = 1.1
)";

TEST(WorkloadFile, ReadsEverything) {
  const WorkloadFile file = parse_workload(kWhole, "w.toml");
  const Workload& workload = file.workload;
  EXPECT_EQ(workload.buckets, (std::vector<std::int64_t>{333, 333, 334}));
  EXPECT_EQ(workload.dtype, DType::f64);
  EXPECT_EQ(workload.compute.mean_s, 0.25);
  EXPECT_EQ(workload.compute.deviation_s, 0.02);
  EXPECT_EQ(workload.compute.jitter, Jitter::lognormal);
  EXPECT_EQ(workload.forward_share, 0.25);
  EXPECT_EQ(workload.update_s, 0.01);
  EXPECT_EQ(workload.ddp_link_share, 0.75);
  EXPECT_EQ(file.target.steps, 5000);
  EXPECT_EQ(file.target.global_batch, 256);
  EXPECT_EQ(file.target.noise_scale, 2e4);
  EXPECT_EQ(file.target.optimizer, "sgd");
  EXPECT_EQ(file.target.steps_ratio, 1.1);
}

TEST(WorkloadFile, WhatIsLeftOutHasDefaults) {
  const WorkloadFile file = parse_workload("parameters = 800\ncompute = \"1s\"", "w.toml");
  EXPECT_EQ(file.workload.buckets, std::vector<std::int64_t>(8, 100));
  EXPECT_EQ(file.workload.compute.jitter, Jitter::constant);
  EXPECT_EQ(file.target.noise_scale, 0);
  const WorkloadFile varying =
      parse_workload("bucket_sizes = [3, 0]\ncompute = \"1s\"\ndeviation = \"0.1s\"", "w.toml");
  EXPECT_EQ(varying.workload.buckets, (std::vector<std::int64_t>{3, 0}));
  EXPECT_EQ(varying.workload.compute.jitter, Jitter::normal);
}

TEST(WorkloadFile, WhatIsWrittenReadsBackEqual) {
  for (std::string_view text :
       {kWhole, std::string_view("parameters = 7\nbuckets = 2\ncompute = \"33us\""),
        std::string_view("bucket_sizes = [5, 1, 9]\ncompute = \"0.1s\"\ndeviation = \"7ms\"")}) {
    const WorkloadFile file = parse_workload(text, "w.toml");
    const std::string written = to_toml(file);
    const WorkloadFile again = parse_workload(written, "again");
    EXPECT_EQ(to_toml(again), written);
    EXPECT_EQ(again.workload.buckets, file.workload.buckets);
    EXPECT_EQ(again.workload.compute.mean_s, file.workload.compute.mean_s);
    EXPECT_EQ(again.workload.compute.jitter, file.workload.compute.jitter);
    EXPECT_EQ(again.target.steps_ratio, file.target.steps_ratio);
  }
}

TEST(WorkloadFile, ComplaintsNameLineAndColumn) {
  const auto message_of = [](std::string_view text) -> std::string {
    try {
      parse_workload(text, "w.toml");
    } catch (const std::invalid_argument& error) {
      return error.what();
    }
    return "no error";
  };
  const std::pair<std::string_view, std::string_view> cases[] = {
      {"", "[w.toml:1:1] a required key is missing; add 'parameters'"},
      {"parameters = 5", "[w.toml:1:1] a required key is missing; add 'compute'"},
      {"parameters = 0", "[w.toml:1:14] 'parameters' must be from 1"},
      {"parameters = 99_000_000_000_000", "[w.toml:1:14] 'parameters' must be from 1"},
      {"parameters = 5\nbuckets = 1_000_000", "[w.toml:2:11] 'buckets' must be from 1 to 10000"},
      {"parameters = 5\nbucket_sizes = [1]", "[w.toml:1:14] 'parameters' must be left out"},
      {"bucket_sizes = []", "[w.toml:1:16] 'bucket_sizes' must be 1 to 10000 numbers"},
      {"bucket_sizes = [-1]", "[w.toml:1:16] 'bucket_sizes' must be numbers"},
      {"parameters = 5\ncompute = \"1\"", "[w.toml:2:11] the unit is missing"},
      {"parameters = 5\ncompute = \"999h\"", "[w.toml:2:11] 'compute' must be at most"},
      {"parameters = 5\ncompute = 1", "[w.toml:2:11] 'compute' must be"},
      {"parameters = 5\ncompute = \"1s\"\njitter = \"normal\"", "[w.toml:3:10] 'jitter' must be"},
      {"parameters = 5\ncompute = \"1s\"\ndeviation = \"11s\"", "[w.toml:3:13] 'deviation'"},
      {"parameters = 5\ncompute = \"1s\"\nforward_share = 2", "[w.toml:3:17] 'forward_share'"},
      {"parameters = 5\ncompute = \"1s\"\ndtype = \"bf16\"",
       "[w.toml:3:9] unknown dtype, got 'bf16'"},
      {"parameters = 5\ncompute = \"1s\"\n[target]\nstep = 3",
       "[w.toml:4:1] unknown key, got 'step'"},
      {"parameters = 5\ncompute = \"1s\"\n[target]\nsteps = 0", "[w.toml:4:9] 'steps' must be"},
      {"parameters = 5\ncompute = \"1s\"\n[target]\noptimizer = \"lion\"", "[w.toml:4:13] unknown"},
  };
  for (const auto& [text, beginning] : cases) {
    EXPECT_TRUE(message_of(text).starts_with(beginning)) << text << "\n" << message_of(text);
  }
}

}  // namespace
}  // namespace gossamer
