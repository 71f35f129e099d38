#include "gossamer/graph/spectral_gap.h"

#include <Eigen/SparseCholesky>
#include <Eigen/SparseCore>
#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "gossamer/base/errors.h"
#include "gossamer/base/index.h"
#include "gossamer/graph/lanczos.h"
#include "gossamer/graph/weights.h"

namespace gossamer {
namespace {

using Sparse = Eigen::SparseMatrix<double>;

constexpr int kSteps = 100;
constexpr double kShift = 1e-9;

Neighbours neighbours_in(const Round& round) {
  Neighbours neighbours(at(round.workers));
  for (int i = 0; i < round.workers; ++i) {
    for (const Entry& entry : round.rows[at(i)]) {
      if (entry.worker != i) neighbours[at(i)].push_back(entry.worker);
    }
  }
  return neighbours;
}

/// shift·I + sign·W.
Sparse shifted(const Round& round, double shift, double sign) {
  std::vector<Eigen::Triplet<double>> entries;
  for (int i = 0; i < round.workers; ++i) {
    entries.emplace_back(i, i, shift);
    for (const Entry& e : row_of(round, i)) entries.emplace_back(i, e.worker, sign * e.weight);
  }
  Sparse matrix(round.workers, round.workers);
  matrix.setFromTriplets(entries.begin(), entries.end());
  return matrix;
}

/// vᵀ(I + sign·W)v/vᵀv as ½ Σ W_ij (v_i + sign·v_j)²: sums of squares, so small values keep their
/// digits, and what is wrong in v enters squared.
double rayleigh(const Round& round, const Eigen::VectorXd& v, double sign) {
  double sum = 0;
  for (int i = 0; i < round.workers; ++i) {
    for (const Entry& e : round.rows[at(i)]) {
      const double term = v[i] + sign * v[e.worker];
      sum += e.weight * term * term;
    }
  }
  return sum / 2 / v.squaredNorm();
}

/// The smallest eigenvalue of I + sign·W on the vectors whose mean is 0.
double smallest(const Round& round, double sign) {
  const Eigen::SimplicialLDLT<Sparse> factors(shifted(round, 1 + kShift, sign));
  GOSSAMER_ASSERT(factors.info() == Eigen::Success);
  const auto solve = [&](Eigen::VectorXd& x) {
    x.array() -= x.mean();
    x = factors.solve(x);
    x.array() -= x.mean();
  };
  return rayleigh(round, largest_eigenvalue(round.workers, solve, kSteps).vector, sign);
}

/// Gershgorin: no eigenvalue of W lies below twice the least self weight less 1.
double disc_bound(const Round& round) {
  double least_self = 1;
  for (int i = 0; i < round.workers; ++i) least_self = std::min(least_self, self_weight(round, i));
  return 2 * least_self - 1;
}

}  // namespace

Round transposed(const Round& round) {
  if (is_partition(round)) return round;
  std::vector<std::vector<Entry>> rows(round.rows.size());
  for (int i = 0; i < round.workers; ++i) {
    for (const Entry& e : round.rows[at(i)]) rows[at(e.worker)].push_back({i, e.weight});
  }
  return sparse_round(round.workers, std::move(rows));
}

double gap_of_symmetric(const Round& round) {
  if (!is_connected(neighbours_in(round))) return 0;
  const double below_one = smallest(round, -1);
  if (1 + disc_bound(round) >= below_one) return below_one;
  return std::min(below_one, smallest(round, 1));
}

bool eigenvalues_above(const Round& round, double bound) {
  if (disc_bound(round) > bound + kShift) return true;
  const Eigen::SimplicialLLT<Sparse> factors(shifted(round, -bound - kShift, 1));
  return factors.info() == Eigen::Success;  // exists where the matrix is positive definite
}

}  // namespace gossamer
