#include "gossamer/graph/spectra.h"

#include <gtest/gtest.h>

#include <Eigen/Eigenvalues>
#include <bit>
#include <cmath>
#include <numbers>
#include <string>

#include "gossamer/graph/algebra.h"
#include "gossamer/graph/dense.h"
#include "gossamer/graph/modifiers.h"
#include "gossamer/graph/spectral_gap.h"
#include "gossamer/graph/topology.h"

namespace gossamer {
namespace spectra_test {

constexpr double kPi = std::numbers::pi;

Schedule make(const char* name, int n) { return make_topology(name, {.shape = even_hosts(n, 1)}); }

/// 1 − cos x without cancellation.
double one_less_cos(double x) { return 2 * std::pow(std::sin(x / 2), 2); }

Eigen::MatrixXd period_product(const Schedule& schedule) {
  const int n = schedule.shape.workers();
  Eigen::MatrixXd total = Eigen::MatrixXd::Identity(n, n);
  for (int t = 0; t < schedule.period; ++t) total = dense_matrix(round_at(schedule, t)) * total;
  return total;
}

Eigen::MatrixXd average(int n) { return Eigen::MatrixXd::Constant(n, n, 1. / n); }

TEST(Rho, OfARingIsTheClosedForm) {
  for (int n = 3; n <= 64; ++n) {
    EXPECT_NEAR(1 - mean_rho(make("ring", n)), 2. / 3 * one_less_cos(2 * kPi / n), 1e-14) << n;
  }
}

TEST(Rho, OfARingOf4096IsAsAccurateAsADoubleBelowOne) {
  const double gap = 2. / 3 * one_less_cos(2 * kPi / 4096);
  EXPECT_NEAR((1 - mean_rho(make("ring", 4096))) / gap, 1, 1.5e-10);
}

TEST(Rho, OfAPathOf4093IsTheClosedForm) {
  // A grid of prime size: thirds, ends keep 2/3; the eigenvalues are ⅓ + ⅔ cos(πk/n).
  const double gap = 2. / 3 * one_less_cos(kPi / 4093);
  EXPECT_NEAR((1 - mean_rho(make("grid", 4093))) / gap, 1, 1e-9);
}

void expect_least(const Round& round, double least) {
  EXPECT_TRUE(eigenvalues_above(round, least - 1e-8));
  EXPECT_FALSE(eigenvalues_above(round, least + 1e-8));
}

TEST(EigenvaluesAbove, KnowsTheClosedForms) {
  for (int n : {3, 4, 7, 32, 33, 1000, 1001}) {
    SCOPED_TRACE(n);
    const double ring = 1. / 3 + 2. / 3 * std::cos(2 * kPi * (n / 2) / n);
    expect_least(round_at(make("ring", n), 0), ring);
    expect_least(round_at(lazy(make("ring", n)), 0), (1 + ring) / 2);
    expect_least(complete_round(n), 0);
    expect_least(identity_round(n), 1);
  }
  for (int n : {3, 7, 127, 1009}) {  // grids of prime sizes are paths
    SCOPED_TRACE(n);
    expect_least(round_at(make("grid", n), 0), 1. / 3 + 2. / 3 * std::cos(kPi * (n - 1) / n));
  }
}

TEST(Rho, OfAStarLeavesExactlyOneNth) {
  for (int n = 3; n <= 64; ++n) EXPECT_NEAR(1 - mean_rho(make("star", n)), 1. / n, 1e-14) << n;
  EXPECT_NEAR(1 - mean_rho(make("star", 4096)), 1. / 4096, 1e-13);
}

TEST(Rho, OfATorusIsTheLargestModeOfBothSides) {
  for (int rows = 2; rows <= 8; ++rows) {
    for (int columns = rows; columns <= rows + 1; ++columns) {
      double largest = 0;
      for (int mode = 1; mode < rows * columns; ++mode) {
        const double along = 2 * std::cos(2 * kPi * (mode % columns) / columns);
        const double across = 2 * std::cos(2 * kPi * (mode / columns) / rows);
        largest = std::max(largest, std::abs(1 + along + across) / 5);
      }
      EXPECT_NEAR(mean_rho(make("torus", rows * columns)), largest, 1e-14) << rows * columns;
    }
  }
}

TEST(Rho, OfALargeTorusIsTheClosedForm) {
  EXPECT_NEAR(1 - mean_rho(make("torus", 4096)), 0.4 * one_less_cos(2 * kPi / 64), 1e-13);
}

TEST(Rho, OfTheExponentialGraphIsTheClosedFormForEvenSizesAndSmallerForOddOnes) {
  for (int n = 2; n <= 64; ++n) {
    const double tau = std::ceil(std::log2(n));
    const double gap = 1 - mean_rho(make("exponential", n));
    if (n % 2 == 0) {
      EXPECT_NEAR(gap, 2 / (tau + 1), 1e-14) << n;
    } else {
      EXPECT_GT(gap, 2 / (tau + 1) + 1e-6) << n;
    }
  }
}

TEST(Rho, OfAPartitionIsZeroForOneGroupAndOneOtherwise) {
  EXPECT_EQ(rho(complete_round(9)), 0);
  EXPECT_EQ(rho(partition_round(4, {{0, 1, 2}, {3}})), 1);
}

TEST(Rho, AgreesWithTheLargestSingularValueOfTheDenseMatrix) {
  for (int n : {150, 200}) {  // beyond what is computed densely
    for (const Schedule& schedule : {make("grid", n), make("star", n), make("random", n),
                                     with_rounds_per_step(make("base_k", n), 3)}) {
      const Round round = round_at(schedule, 0);
      const Eigen::MatrixXd rest = dense_matrix(round) - average(n);
      const Eigen::SelfAdjointEigenSolver<Eigen::MatrixXd> solver(rest.transpose() * rest);
      const double expected = std::sqrt(solver.eigenvalues()[n - 1]);
      EXPECT_NEAR(rho(round), expected, 1e-12) << schedule.name << " " << n;
    }
  }
}

TEST(GapOfSymmetric, FindsNegativeEigenvaluesAndSeparateParts) {
  // An even ring without self weight has the eigenvalue −1.
  std::vector<std::vector<Entry>> rows;
  for (int i = 0; i < 200; ++i) rows.push_back({{(i + 1) % 200, 0.5}, {(i + 199) % 200, 0.5}});
  EXPECT_NEAR(gap_of_symmetric(sparse_round(200, rows)), 0, 1e-12);
  for (int i = 0; i < 200; ++i) rows[static_cast<std::size_t>(i)] = {{i ^ 1, 0.5}, {i, 0.5}};
  EXPECT_EQ(gap_of_symmetric(sparse_round(200, rows)), 0);
}

TEST(MeanRho, OfPairsAlongARingIsThatOfTheLazyRing) {
  // The mean of both rounds is ½ self and ¼ each side.
  for (int n = 4; n <= 64; n += 2) {
    EXPECT_NEAR(1 - mean_rho(make("one_peer_ring", n)), one_less_cos(2 * kPi / n) / 2, 1e-14) << n;
  }
}

TEST(MeanRho, OfAHypercubeIsOneLessTheInverseOfItsDimension) {
  for (int dimension = 1; dimension <= 12; ++dimension) {
    EXPECT_NEAR(mean_rho(make("hypercube", 1 << dimension)), 1 - 1. / dimension, 1e-12);
  }
}

TEST(MeanRho, OfRowsAndColumnsOfALargeSquareIsAHalf) {
  // Both rounds are projections, and what they keep in common is the mean: (1 + 0)/2 is next.
  constexpr int kSide = 36;
  std::vector<std::vector<int>> rows(kSide);
  std::vector<std::vector<int>> columns(kSide);
  for (int worker = 0; worker < kSide * kSide; ++worker) {
    rows[static_cast<std::size_t>(worker / kSide)].push_back(worker);
    columns[static_cast<std::size_t>(worker % kSide)].push_back(worker);
  }
  constexpr int kWorkers = kSide * kSide;
  const Schedule schedule =
      periodic_schedule("rows and columns", even_hosts(kWorkers, 1),
                        {partition_round(kWorkers, rows), partition_round(kWorkers, columns)});
  EXPECT_NEAR(mean_rho(schedule), 0.5, 1e-9);
  EXPECT_NEAR(period_contraction(schedule), 0, 1e-9);
}

TEST(PeriodContraction, OfPairsAlongAnEvenRingIsTheCosineAndSquaredPerRepetition) {
  for (int n = 4; n <= 64; n += 2) {
    const Schedule schedule = make("one_peer_ring", n);
    const double cosine = std::cos(2 * kPi / n);
    EXPECT_NEAR(period_contraction(schedule), cosine, 1e-13) << n;
    // As a norm; the eigenvalue, which is what repetitions multiply by, is cos².
    const Eigen::MatrixXd rest = period_product(schedule) - average(n);
    EXPECT_NEAR((rest * rest).jacobiSvd().singularValues()[0], std::pow(cosine, 3), 1e-12) << n;
  }
  EXPECT_EQ(period_contraction(make("one_peer_ring", 2)), 0);
}

TEST(PeriodContraction, OfPairsAlongALargeEvenRingIsTheCosine) {
  const double gap = one_less_cos(2 * kPi / 4096);
  EXPECT_NEAR((1 - period_contraction(make("one_peer_ring", 4096))) / gap, 1, 1e-9);
}

TEST(OnePeerExponential, IsExactForPowersOfTwoOnly) {
  for (int n = 1; n <= 64; ++n) {
    const Schedule schedule = make("one_peer_exponential", n);
    EXPECT_EQ(exact_average(schedule), std::has_single_bit(static_cast<unsigned>(n))) << n;
  }
}

TEST(OnePeerExponential, MissesTheAverageByTheKnownAmountsElsewhere) {
  // The offsets' sums 0 … 2^τ − 1 are equally likely; modulo n some places are hit once more. The
  // largest entry of |product − J| is max(⌈2^τ/n⌉/2^τ − 1/n, 1/n − ⌊2^τ/n⌋/2^τ).
  const auto worst = [](int n) {
    return (period_product(make("one_peer_exponential", n)) - average(n)).cwiseAbs().maxCoeff();
  };
  EXPECT_NEAR(worst(6), 1. / 12, 1e-15);
  EXPECT_NEAR(worst(12), 1. / 24, 1e-15);
  for (int n = 3; n <= 64; ++n) {
    const double sums = std::exp2(std::ceil(std::log2(n)));
    const double more = std::ceil(sums / n) / sums - 1. / n;
    EXPECT_NEAR(worst(n), std::max(more, 1. / n - std::floor(sums / n) / sums), 1e-14) << n;
  }
}

TEST(OnePeerExponential, HasTheNormOfTheDirichletKernel) {
  for (int n : {3, 6, 12, 48, 200, 1000}) {
    const double sums = std::exp2(std::ceil(std::log2(n)));
    double largest = 0;
    for (int mode = 1; mode < n; ++mode) {
      const double x = kPi * mode / n;
      largest = std::max(largest, std::abs(std::sin(sums * x) / (sums * std::sin(x))));
    }
    EXPECT_NEAR(period_contraction(make("one_peer_exponential", n)), largest, 1e-11) << n;
  }
}

TEST(ExactAverage, HoldsForHypercubesAndAerOfPowersOfTwoAtEverySize) {
  for (int n = 1; n <= 1024; n *= 2) {
    EXPECT_TRUE(exact_average(make("hypercube", n))) << n;
    EXPECT_TRUE(exact_average(make_topology("aer", {.shape = even_hosts(n, 2)}))) << n;
  }
}

TEST(ExactAverage, HoldsForLargeBaseKGraphs) {
  for (int n : {129, 1000, 1021}) EXPECT_TRUE(exact_average(make("base_k", n))) << n;
}

}  // namespace spectra_test
}  // namespace gossamer
