// Runs whose payloads between hosts are coded.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "gossamer/engine/testing/engine_case.h"
#include "gossamer/graph/modifiers.h"
#include "gossamer/graph/topology.h"

namespace gossamer {
namespace engine_codec_test {

using namespace engine_case;  // NOLINT: all of it is about this test

constexpr std::int64_t kSteps = 12;
constexpr double kLr = 0.05;

Case case_of(const std::string& topology, const HostShape& shape, Codec codec,
             const std::string& pattern = "cwa") {
  Case c;
  c.options.schedule = make_topology(topology, {.shape = shape, .seed = 3});
  c.options.pattern = pattern;
  if (find_pattern(pattern).is_static) c.options.schedule = lazy(c.options.schedule);
  c.options.optimizer = "sgd";
  // Outer steps without momentum, which keep the mean.
  c.options.groups = {
      {.lr = kLr, .consensus = 0.6, .outer_every = 2, .outer_momentum = 0, .outer_lr = 1}};
  c.options.codec = codec;
  c.bucket_sizes = {700, 300, 1};
  c.group_of.assign(1001, 0);
  c.steps = kSteps;
  return c;
}

const std::vector<HostShape> kShapes{even_hosts(4, 2), {{1, 2, 3}}, even_hosts(5, 1), {{3, 2}}};

TEST(EngineCodec, WorkerMeanMovesByMinusLrTimesTheMeanGradient) {
  for (const Codec codec : kLossyCodecs) {
    for (const HostShape& shape : kShapes) {
      for (const std::string topology : {"ring", "aer", "complete", "one_peer_exponential"}) {
        for (const std::string pattern :
             {"cwa", "atc", "exact_diffusion", "extra", "gradient_tracking",
              "gradient_tracking_atc", "noloco", "dsgd_ac"}) {
          const bool is_static = topology == "ring" || topology == "complete";
          if (find_pattern(pattern).is_static && !is_static) continue;
          SCOPED_TRACE(std::string(name_of(codec)) + " " + topology + " " + pattern + ", " +
                       std::to_string(shape.hosts()) + " hosts");
          const Case c = case_of(topology, shape, codec, pattern);
          const Gradient constant = [](int worker, std::int64_t, const std::vector<double>& x) {
            return std::vector<double>(x.size(), worker + 1.0);
          };
          const Matrix end = engine_run<double>(c, constant);
          const auto first = first_model<double>(c);
          const int n = shape.workers();
          const double moved = kLr * kSteps * (n + 1) / 2.0;
          for (std::size_t k = 0; k < first->x.size(); ++k) {
            double mean = 0;
            for (const auto& x : end) mean += x[k] / n;
            ASSERT_NEAR(mean, first->x[k] - moved, 1e-11) << "element " << k;
          }
        }
      }
    }
  }
}

TEST(EngineCodec, RunsStayCloseToTheUncodedOneAndAreNotIt) {
  for (const HostShape& shape : kShapes) {
    for (const std::string topology : {"ring", "aer", "complete"}) {
      SCOPED_TRACE(topology + ", " + std::to_string(shape.hosts()) + " hosts");
      const Gradient gradient = quadratics(11);
      const Matrix plain = engine_run<float>(case_of(topology, shape, Codec::fp32), gradient);
      const double bf16 = largest_difference(
          engine_run<float>(case_of(topology, shape, Codec::bf16), gradient), plain);
      const double int8 = largest_difference(
          engine_run<float>(case_of(topology, shape, Codec::int8), gradient), plain);
      EXPECT_LT(bf16, 2e-2);
      EXPECT_LT(int8, 8e-2);
      EXPECT_GT(bf16, 1e-5);
      EXPECT_GT(int8, 1e-5);
    }
  }
}

TEST(EngineCodec, SeveralPayloadsAreDecodedApart) {
  for (const Pattern& pattern : patterns()) {
    if (pattern.payloads.size() < 2) continue;
    SCOPED_TRACE(pattern.name);
    const Gradient gradient = quadratics(11);
    const auto run = [&](Codec codec) {
      Case c = case_of("ring", even_hosts(4, 1), codec, std::string(pattern.name));
      if (!pattern.optimizers.empty()) c.options.optimizer = pattern.optimizers.front();
      return engine_run<float>(c, gradient);
    };
    EXPECT_LT(largest_difference(run(Codec::bf16), run(Codec::fp32)), 2e-2);
  }
}

TEST(EngineCodec, WorkersOfOneHostSendUncoded) {
  const Gradient gradient = quadratics(4);
  const Case plain = case_of("ring", even_hosts(1, 4), Codec::fp32);
  const Case coded = case_of("ring", even_hosts(1, 4), Codec::int8);
  EXPECT_EQ(engine_run<float>(plain, gradient), engine_run<float>(coded, gradient));
}

TEST(EngineCodec, AllReduceLeavesAllWorkersWithTheSameBits) {
  for (const Codec codec : kLossyCodecs) {
    for (const HostShape& shape : kShapes) {
      SCOPED_TRACE(std::string(name_of(codec)) + ", " + std::to_string(shape.hosts()) + " hosts");
      const Matrix end =
          engine_run<float>(case_of("complete", shape, codec, "allreduce"), quadratics(5));
      for (const auto& x : end) EXPECT_EQ(x, end[0]);
    }
  }
}

TEST(EngineCodec, SpansSegmentsAndSeveralThreads) {
  Case c = case_of("ring", even_hosts(3, 1), Codec::int8);
  const Gradient gradient = quadratics(6);
  const Matrix whole = engine_run<float>(c, gradient);
  c.options.groups = {{.lr = kLr}, {.lr = kLr}};
  for (std::size_t k = 0; k < c.group_of.size(); ++k) c.group_of[k] = k % 97 < 31 ? 1 : 0;
  c.options.kernel_threads = 3;
  EXPECT_EQ(engine_run<float>(c, gradient), whole);
}

TEST(EngineCodec, WithAnotherGroupMethodIsRefused) {
  Case c = case_of("complete", even_hosts(2, 2), Codec::bf16);
  c.options.group_method = GroupMethod::ring;
  EXPECT_THROW(engine_run<float>(c, quadratics(1)), std::invalid_argument);
}

}  // namespace engine_codec_test
}  // namespace gossamer
