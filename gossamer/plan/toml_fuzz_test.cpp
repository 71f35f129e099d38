/// Broken cluster.toml and workload.toml: whatever the text, there is a result that can be used or
/// one message. GOSSAMER_FUZZ_SECONDS=600 makes it go on for ten minutes.

#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <string_view>

#include "gossamer/base/cluster_file.h"
#include "gossamer/base/rng.h"
#include "gossamer/plan/forecast.h"
#include "gossamer/plan/workload_file.h"

namespace gossamer {
namespace {

constexpr std::string_view kSeeds[] = {
    "[[hosts]]\ncount = 2\nworkers = 3\nlink_rate = \"20Mbit/s\"\nlink_latency = \"200us\"\n"
    "inside_rate = \"10GB/s\"\nspeed = 0.5\n[[hosts]]\n",
    "parameters = 1_000\nbuckets = 3\ndtype = \"f64\"\ncompute = \"250ms\"\ndeviation = \"20ms\"\n"
    "jitter = \"lognormal\"\nforward_share = 0.25\nupdate = \"10ms\"\n[target]\nsteps = 5000\n"
    "global_batch = 256\nnoise_scale = 2e4\noptimizer = \"sgd\"\nsteps_ratio = 1.1\n",
    "bucket_sizes = [5, 0, 9]\ncompute = \"1s\"\n",
};
constexpr std::string_view kPieces[] = {
    "[[hosts]]", "[target]", "[[target]]",  "= -1",  "= 0",   "9223372036854775807", "1e999",
    "nan",       "inf",      "\"0Mbit/s\"", "[[[[[", "\"\"",  "\"1e308TB/s\"",       "\\u0000",
    "{a=1}",     "'''",      "# \xff\xfe",  "\n\n",  "count", "\"unlimited\"",       "65536",
    "99999999",  "true",     "1979-05-27",  "a.b.c", ",",     "\"5000h\"",           "\r",
};

std::string mutated(Rng& rng) {
  std::string text(kSeeds[rng.below(std::size(kSeeds))]);
  for (auto changes = 1 + rng.below(3); changes > 0; --changes) {
    const std::size_t at = rng.below(text.size() + 1);
    const std::size_t length = std::min<std::size_t>(rng.below(12), text.size() - at);
    switch (rng.below(5)) {
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
      default:
        if (at < text.size()) text[at] = static_cast<char>(rng.below(256));
    }
  }
  return text;
}

/// Whether it could be read. What can be read is written and read back, and small ones are run.
bool try_cluster(const std::string& text) {
  try {
    const ClusterFile file = parse_cluster(text, "c.toml");
    const std::string again = to_toml(file);
    EXPECT_EQ(to_toml(parse_cluster(again, "again")), again) << text;
    if (file.cluster.shape().workers() <= 16) {
      const Workload workload{.buckets = {10}, .compute = {.mean_s = 1e-3}};
      forecast(file.cluster, workload, parse_method("ring"), {.steps = 2, .warm_up = 0});
    }
    return true;
  } catch (const std::invalid_argument& error) {
    EXPECT_TRUE(std::string_view(error.what()).starts_with("[")) << error.what();
    return false;
  }
}

bool try_workload(const std::string& text) {
  try {
    const WorkloadFile file = parse_workload(text, "w.toml");
    const std::string again = to_toml(file);
    EXPECT_EQ(to_toml(parse_workload(again, "again")), again) << text;
    check_workload(file.workload, 1);
    return true;
  } catch (const std::invalid_argument& error) {
    EXPECT_TRUE(std::string_view(error.what()).starts_with("[")) << error.what();
    return false;
  }
}

TEST(TomlFuzz, EveryTextIsReadOrRefused) {
  const char* wish = std::getenv("GOSSAMER_FUZZ_SECONDS");
  const auto end = std::chrono::steady_clock::now() +
                   std::chrono::seconds(wish ? std::strtol(wish, nullptr, 10) : 0);
  Rng rng(11);
  std::int64_t read = 0;
  std::int64_t refused = 0;
  for (std::int64_t k = 0; k < 20'000 || std::chrono::steady_clock::now() < end; ++k) {
    const std::string text = mutated(rng);
    for (bool good : {try_cluster(text), try_workload(text)}) ++(good ? read : refused);
    ASSERT_FALSE(HasFailure()) << text;
  }
  std::printf("%lld read, %lld refused\n", static_cast<long long>(read),
              static_cast<long long>(refused));
  EXPECT_GT(read, 200);
  EXPECT_GT(refused, 1000);
}

}  // namespace
}  // namespace gossamer
