#include "gossamer/model/published_fit.h"

#include <gtest/gtest.h>

#include <cmath>
#include <stdexcept>
#include <string_view>

#include "gossamer/graph/topology.h"
#include "gossamer/model/published.h"

namespace gossamer {
namespace {

Fit fit_of(std::string_view name) {
  for (const FitProblem& problem : published_problems()) {
    if (problem.name == name) return fit_constants(problem);
  }
  ADD_FAILURE() << "no problem " << name;
  return {};
}

double constant(const Fit& fit, std::string_view name) {
  for (const auto& [known, value] : fit.constants) {
    if (known == name) return value;
  }
  return std::nan("");
}

TEST(PosterRows, HoursAndSpeedUpsOfATaskGiveOneAllReduceTime) {
  double first = 0;
  for (const PosterRow& row : poster_rows()) {
    const double allreduce_hours = row.hours / (1 - row.speed_up);
    if (row.topology == "complete") first = allreduce_hours;
    EXPECT_NEAR(allreduce_hours / first, 1, 0.003) << row.task << " " << row.topology;
  }
}

TEST(PosterRows, FirstRowFollowsFromThreeNumbers) {
  // γ = 2.05, σ = .1 and ω = 1, .65, .47, in closed form: within four points.
  const StepRatios ratios{.gamma = 2.05, .buckets = 5};
  const double omegas[] = {1, 0.65, 0.47};
  for (std::size_t k = 0; k < 3; ++k) {
    StepRatios own = ratios;
    own.omega = omegas[k];
    EXPECT_NEAR(speed_up(own), poster_rows()[k].speed_up, 0.04) << k;
    const Schedule schedule = make_topology(k == 1 ? "one_peer_ring" : poster_rows()[k].topology,
                                            {.shape = even_hosts(4, 4)});
    // With jitter: within three.
    EXPECT_NEAR(speed_up_with_jitter(schedule, {.ratios = own, .sigma = 0.1}),
                poster_rows()[k].speed_up, 0.03)
        << k;
  }
}

TEST(PosterRows, AreWithinThreePointsOfTheRecursion) {
  const Fit en_de = fit_of("en-de");
  EXPECT_LT(en_de.largest_residual(), 0.01);
  EXPECT_GT(constant(en_de, "gamma"), 1.9);  // Ethernet: communication takes longest
  EXPECT_LT(constant(en_de, "gamma"), 2.6);
  const Fit en_fr = fit_of("en-fr");
  EXPECT_LT(en_fr.largest_residual(), 0.03);
  EXPECT_LT(constant(en_fr, "gamma"), 0.5);
  const Fit resnet = fit_of("resnet-50");
  EXPECT_LT(resnet.largest_residual(), 0.01);
  // Sentences differ in length, images do not.
  EXPECT_LT(constant(resnet, "sigma"), constant(en_fr, "sigma"));
}

TEST(RuntimePoints, AreWithinThirteenPercentOfTheClosedForms) {
  EXPECT_EQ(runtime_points().size(), 9U);
  EXPECT_LT(fit_of("A40, 25 Gbit/s Ethernet").largest_residual(), 0.13);
  EXPECT_LT(fit_of("A100, 100 Gbit/s InfiniBand").largest_residual(), 0.06);
  EXPECT_LT(fit_of("T4, InfiniBand").largest_residual(), 0.04);
  // 65 M parameters of four bytes at about the rate the link is sold with take 83 ms.
  EXPECT_NEAR(constant(fit_of("A40, 25 Gbit/s Ethernet"), "payload ms"), 83, 15);
}

TEST(LectureTables, AreWithinFifteenPercent) {
  // A partial average moves less than half of what an all-reduce does: the slopes differ by 2.86.
  EXPECT_LT(fit_of("256 V100, communication").largest_residual(), 0.15);
  const Fit imagenet = fit_of("V100, ImageNet");
  EXPECT_EQ(imagenet.points.size(), 12U);
  EXPECT_LT(imagenet.largest_residual(), 0.12);
}

TEST(OmegaOfFlatAer, IsTheRatioOfTheBytes) {
  EXPECT_NEAR(omega_of_flat_aer(even_hosts(4, 4)), 0.5 * (7.0 / 8) / (15.0 / 16), 1e-12);
  EXPECT_NEAR(omega_of_flat_aer(even_hosts(2, 4)), 0.5, 1e-12);
}

TEST(SpeedUpWithJitter, IsTheClosedFormWithoutIt) {
  const Schedule ring = make_topology("ring", {.shape = even_hosts(8, 1)});
  for (double gamma : {0.1, 0.8, 3.0}) {
    const StepRatios ratios{.gamma = gamma, .omega = 0.7, .buckets = 5};
    EXPECT_NEAR(speed_up_with_jitter(ring, {.ratios = ratios}), speed_up(ratios), 1e-9) << gamma;
  }
}

TEST(StepTimesWithJitter, AreTheClosedFormsWithoutIt) {
  const StepRatios ratios{.gamma = 2, .omega = 0.7, .buckets = 5};
  const auto pair_of = [&](const char* name, const HostShape& shape) {
    return step_times_with_jitter(make_topology(name, {.shape = shape}), {.ratios = ratios});
  };
  const StepPair ring = pair_of("ring", even_hosts(8, 1));
  EXPECT_NEAR(ring.allreduce, allreduce_time(ratios), 1e-9);
  EXPECT_NEAR(ring.decentralized, decentralized_time(ratios), 1e-9);
  // Hosts take turns in being the busiest, so that steps are shorter than the busiest link's mean.
  const double random = pair_of("random", even_hosts(8, 1)).decentralized;
  EXPECT_GT(random, 0.8 * decentralized_time(ratios));
  EXPECT_LT(random, decentralized_time(ratios));
  EXPECT_THROW(pair_of("ring", even_hosts(1, 8)), std::invalid_argument);
}

}  // namespace
}  // namespace gossamer
