#include "gossamer/lab/problem.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "gossamer/base/rng.h"

namespace gossamer {
namespace {

struct Named {
  std::string name;
  std::unique_ptr<const Problem> problem;
};

Images few_images() {
  Images images{.dimension = 4, .classes = 3, .features = {}, .labels = {}};
  Rng rng(5);
  for (int k = 0; k < 60; ++k) {
    for (int j = 0; j < 3; ++j) images.features.push_back(rng.uniform());
    images.features.push_back(1);
    images.labels.push_back(static_cast<int>(rng.below(3)));
  }
  return images;
}

/// All problems with all samples in every step: their gradients are those of their losses.
std::vector<Named> deterministic() {
  const SyntheticSpec spec{
      .workers = 3, .dimension = 4, .samples = 20, .batch = 0, .heterogeneity = 1, .ridge = 0.1};
  std::vector<Named> all;
  all.push_back({"quadratic", make_quadratic({.dimension = 2, .centres = {1, 2, 3, 4, 5, -6}})});
  all.push_back({"least squares", make_least_squares(spec)});
  all.push_back({"logistic", make_logistic(spec)});
  for (const Split split : {Split::iid, Split::by_class}) {
    all.push_back(
        {"softmax", make_softmax(few_images(), {.workers = 3, .batch = 0, .split = split})});
  }
  return all;
}

std::vector<double> some_point(const Problem& problem, std::uint64_t seed) {
  Rng rng(seed);
  std::vector<double> x(problem.size());
  for (double& value : x) value = rng.normal();
  return x;
}

TEST(Problem, GradientsAreTheDerivativesOfTheLosses) {
  for (const auto& [name, problem] : deterministic()) {
    std::vector<double> x = some_point(*problem, 7);
    std::vector<double> g(problem->size());
    problem->gradients({}, x, g);
    constexpr double kStep = 1e-5;
    for (std::size_t k = 0; k < x.size(); ++k) {
      const double at = x[k];
      x[k] = at + kStep;
      const double above = problem->drawn_loss({}, x);
      x[k] = at - kStep;
      const double below = problem->drawn_loss({}, x);
      x[k] = at;
      EXPECT_NEAR(g[k], problem->workers() * (above - below) / (2 * kStep), 1e-7) << name << k;
    }
  }
}

std::vector<double> everywhere(const Problem& problem, const std::vector<double>& point) {
  std::vector<double> x;
  for (int i = 0; i < problem.workers(); ++i) x.insert(x.end(), point.begin(), point.end());
  return x;
}

TEST(Problem, TheMeanGradientVanishesAtTheMinimiserAndTheLossIsLeast) {
  for (const auto& [name, problem] : deterministic()) {
    const std::vector<double> minimiser = problem->minimiser();
    std::vector<double> g(problem->size());
    problem->gradients({}, everywhere(*problem, minimiser), g);
    const auto d = static_cast<std::size_t>(problem->dimension());
    for (std::size_t k = 0; k < d; ++k) {
      double sum = 0;
      for (std::size_t i = k; i < g.size(); i += d) sum += g[i];
      EXPECT_NEAR(sum, 0, 1e-11) << name;
    }
    const double least = problem->loss(minimiser);
    EXPECT_NEAR(least, problem->drawn_loss({}, everywhere(*problem, minimiser)), 1e-12) << name;
    for (std::uint64_t seed = 1; seed < 20; ++seed) {
      std::vector<double> other = some_point(*problem, seed);
      other.resize(d);
      for (std::size_t k = 0; k < d; ++k) other[k] = minimiser[k] + 0.01 * other[k];
      EXPECT_GT(problem->loss(other), least) << name;
    }
  }
}

/// Drawn gradients are unbiased, reproducible and differ from step to step.
TEST(Problem, DrawsAreUnbiased) {
  const SyntheticSpec spec{.workers = 2, .dimension = 3, .samples = 10, .batch = 2};
  SyntheticSpec all = spec;
  all.batch = 0;
  const auto drawn = make_logistic(spec);
  const auto whole = make_logistic(all);
  const std::vector<double> x = some_point(*drawn, 3);
  std::vector<double> expected(x.size());
  std::vector<double> g(x.size());
  std::vector<double> mean(x.size());
  whole->gradients({}, x, expected);
  constexpr int kSteps = 40'000;
  for (std::int64_t step = 0; step < kSteps; ++step) {
    drawn->gradients({.seed = 9, .step = step}, x, g);
    for (std::size_t k = 0; k < g.size(); ++k) mean[k] += g[k] / kSteps;
  }
  for (std::size_t k = 0; k < g.size(); ++k) EXPECT_NEAR(mean[k], expected[k], 0.02);
  std::vector<double> again(x.size());
  drawn->gradients({.seed = 9, .step = kSteps - 1}, x, again);
  EXPECT_EQ(again, g);
  drawn->gradients({.seed = 10, .step = kSteps - 1}, x, again);
  EXPECT_NE(again, g);
}

TEST(Problem, SplitByClassGivesEachWorkerFewClasses) {
  Images images = few_images();
  std::ranges::sort(images.labels);
  const auto sorted = make_softmax(images, {.workers = 3, .batch = 0, .split = Split::by_class});
  // At 0 the gradient of a class that a worker does not have is the mean feature over the classes.
  std::vector<double> g(sorted->size());
  sorted->gradients({}, std::vector<double>(sorted->size()), g);
  const auto one = static_cast<std::size_t>(sorted->dimension());
  EXPECT_NEAR(g[2 * 4 + 3], 1. / 3, 1e-12);            // worker 0 never sees class 2
  EXPECT_NEAR(g[2 * one + 0 * 4 + 3], 1. / 3, 1e-12);  // the last one never class 0
}

TEST(Problem, NumbersThatMakeNoSenseAreRefused) {
  EXPECT_THROW(make_logistic({.workers = 0}), std::invalid_argument);
  EXPECT_THROW(make_logistic({.samples = 0}), std::invalid_argument);
  EXPECT_THROW(make_least_squares({.heterogeneity = 2}), std::invalid_argument);
  EXPECT_THROW(make_least_squares({.ridge = -1}), std::invalid_argument);
  EXPECT_THROW(make_quadratic({.dimension = 2, .centres = {1, 2, 3}}), std::invalid_argument);
  EXPECT_THROW(make_softmax(few_images(), {.workers = 61}), std::invalid_argument);
}

}  // namespace
}  // namespace gossamer
