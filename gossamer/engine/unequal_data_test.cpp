/// Patterns that repair what plain averaging loses where the workers' data differ, on
/// f_i(x) = ½ ‖x − b_i‖² without noise, whose limits are known in closed form.

#include <gtest/gtest.h>

#include <cmath>
#include <numbers>
#include <string>
#include <vector>

#include "gossamer/base/index.h"
#include "gossamer/engine/testing/engine_case.h"
#include "gossamer/graph/modifiers.h"
#include "gossamer/graph/topology.h"

namespace gossamer {
namespace unequal_data_test {

using namespace engine_case;  // NOLINT: all of it is about this test

constexpr double kPi = std::numbers::pi;
constexpr int kWorkers = 9;
constexpr double kLr = 0.1;
constexpr const char* kCorrections[] = {"exact_diffusion", "extra", "gradient_tracking",
                                        "gradient_tracking_atc"};

/// One mode of the ring, whose mean is 0: b_i = cos(2π i / n) in the first element, 1 in the
/// second.
double centre(int worker, std::size_t k) {
  return k == 1 ? 1 : std::cos(2 * kPi * worker / kWorkers);
}

Gradient deterministic() {
  return [](int worker, std::int64_t, const std::vector<double>& x) {
    std::vector<double> g(x.size());
    for (std::size_t k = 0; k < x.size(); ++k) g[k] = x[k] - centre(worker, k);
    return g;
  };
}

Case ring_case(const std::string& pattern, const char* topology = "ring") {
  Case c;
  c.options.schedule = make_topology(topology, {.shape = even_hosts(kWorkers, 1)});
  c.options.pattern = pattern;
  c.options.optimizer = pattern == "qg_dmsgd" ? "momentum" : "sgd";
  c.options.groups = {{.lr = kLr}};
  c.bucket_sizes = {2};
  c.group_of = {0, 0};
  c.steps = 1500;
  return c;
}

/// The root mean square over the workers of what is left to the minimiser, (0, 1).
double error_of(const Matrix& x) {
  double sum = 0;
  for (const std::vector<double>& row : x) sum += row[0] * row[0] + (row[1] - 1) * (row[1] - 1);
  return std::sqrt(sum / static_cast<double>(x.size()));
}

TEST(UnequalData, TheExactMinimiserIsReached) {
  for (const char* pattern : kCorrections) {
    EXPECT_LT(error_of(engine_run<double>(ring_case(pattern), deterministic())), 1e-10) << pattern;
  }
}

TEST(UnequalData, GradientTrackingReachesItOnGraphsThatChange) {
  for (const char* topology : {"one_peer_ring", "one_peer_exponential", "exponential"}) {
    for (const char* pattern : {"gradient_tracking", "gradient_tracking_atc"}) {
      const Case c = ring_case(pattern, topology);
      EXPECT_LT(error_of(engine_run<double>(c, deterministic())), 1e-10) << topology << pattern;
    }
  }
}

/// With J gradient_tracking_atc is gradient descent, stable below 2/L. With gradient_tracking the
/// differences between workers follow x⁺ = −α (x − x before), stable below 1/2 only.
TEST(UnequalData, MixingTheTrackerFirstAllowsLargerSteps) {
  for (const char* pattern : {"gradient_tracking", "gradient_tracking_atc"}) {
    Case c = ring_case(pattern, "complete");
    c.options.groups[0].lr = 1.2;
    c.steps = 200;
    const double error = error_of(engine_run<double>(c, deterministic()));
    if (std::string(pattern) == "gradient_tracking_atc") {
      EXPECT_LT(error, 1e-10);
    } else {
      EXPECT_GT(error, 1);
    }
  }
}

/// FACTS: of a mode λ that b has with amplitude b_λ, atc keeps λαb_λ/(1 − λ(1 − α)), cwa
/// αb_λ/(1 − λ + α).
TEST(UnequalData, WithoutCorrectionABiasStays) {
  const double mode = 1. / 3 + 2. / 3 * std::cos(2 * kPi / kWorkers);
  const double amplitude = std::sqrt(0.5);
  const double atc = mode * kLr * amplitude / (1 - mode * (1 - kLr));
  const double cwa = kLr * amplitude / (1 - mode + kLr);
  EXPECT_NEAR(error_of(engine_run<double>(ring_case("atc"), deterministic())), atc, 1e-9);
  EXPECT_NEAR(error_of(engine_run<double>(ring_case("cwa"), deterministic())), cwa, 1e-9);
}

TEST(UnequalData, TheMinimiserIsReachedWhileTheLearningRateChanges) {
  for (const char* pattern : kCorrections) {
    Case c = ring_case(pattern);
    Matrix result(kWorkers);
    run_looking(c, deterministic(), [&](std::int64_t step, Engine& engine, Model<double>& model) {
      engine.groups()[0].lr = kLr * (step < 500 ? 1 : step < 800 ? 0.1 : 0.5);
      result[at(engine.collectives().rank())] = model.x;
    });
    EXPECT_LT(error_of(result), 1e-10) << pattern;
  }
}

/// With J every worker has the mean: without noise all are gradient descent on the mean.
TEST(UnequalData, OnTheCompleteGraphAllCorrectionsAreAllReduce) {
  const Matrix expected = engine_run<double>(ring_case("allreduce"), deterministic());
  for (const char* pattern : {"atc", "exact_diffusion", "gradient_tracking_atc", "push_sum"}) {
    Case c = ring_case(pattern, "complete");
    c.steps = 20;
    Case baseline = ring_case("allreduce");
    baseline.steps = 20;
    const Matrix x = engine_run<double>(c, deterministic());
    EXPECT_LT(largest_difference(x, engine_run<double>(baseline, deterministic())), 1e-14)
        << pattern;
  }
  EXPECT_LT(error_of(expected), 1e-12);
}

}  // namespace unequal_data_test
}  // namespace gossamer
