// Least squares and logistic regression: f_i(x) = mean over its samples of ℓ(a·x, b) + r/2 ‖x‖².
#include <Eigen/Dense>
#include <array>
#include <cmath>
#include <utility>

#include "gossamer/base/errors.h"
#include "gossamer/lab/problems/row_loops.h"
#include "gossamer/lab/problems/samples.h"

namespace gossamer {
namespace {

using Values = Eigen::Array<double, Eigen::Dynamic, 1, 0, kDrawsAtOnce>;

/// ℓ(s, b), its derivative by s and its second one.
struct Squares {
  static constexpr bool kHasTarget = true;
  static double value(double s, double b) { return (s - b) * (s - b) / 2; }
  static double slope(double s, double b) { return s - b; }
  static double curvature(double, double) { return 1; }
  static Values slopes(const Values& s, const Values& b) { return s - b; }
};

/// With b·a in the place of a, which has the same bits for b = ±1, so that b is 1 and not stored.
struct Logistic {
  static constexpr bool kHasTarget = false;
  static double value(double s, double b) {
    const double margin = b * s;
    return std::log1p(std::exp(-std::abs(margin))) + std::max(-margin, 0.0);
  }
  static double slope(double s, double b) { return -b / (1 + std::exp(b * s)); }
  static double curvature(double s, double) {
    const double p = 1 / (1 + std::exp(-s));
    return p * (1 - p);
  }
  static Values slopes(const Values& s, const Values& b) { return -b / (1 + (b * s).exp()); }
};

template <class Loss>
class LinearModel final : public Problem {
 public:
  LinearModel(Samples samples, int batch, double ridge)
      : Problem(samples.workers(), samples.dimension()),
        samples_(std::move(samples)),
        batch_(batch),
        ridge_(ridge),
        d_(static_cast<std::size_t>(samples_.dimension())) {}

  void gradients(const Draw& draw, std::span<const double> x, std::span<double> g) const override {
    const double share = 1. / (batch_ > 0 ? batch_ : samples_.per_worker());
    const RowLoops& loops = row_loops();
    std::array<const float*, kDrawsAtOnce> rows;
    std::array<const double*, kDrawsAtOnce> points;
    std::array<double*, kDrawsAtOnce> to;
    for_each_drawn(samples_, batch_, draw, [&](std::span<const Drawn> drawn) {
      const auto count = static_cast<Eigen::Index>(drawn.size());
      Values s(count);
      Values b(count);
      for (std::size_t k = 0; k < drawn.size(); ++k) {
        rows[k] = samples_.row(drawn[k].row);
        points[k] = &x[drawn[k].worker * d_];
        to[k] = &g[drawn[k].worker * d_];
        b[static_cast<Eigen::Index>(k)] = target(drawn[k].row);
      }
      loops.dots(rows.data(), points.data(), drawn.size(), d_, s.data());
      const Values slopes = share * Loss::slopes(s, b);
      for (std::size_t k = 0; k < drawn.size();) {
        const std::size_t begin = k;
        const bool is_first = drawn[k].is_first;
        while (k < drawn.size() && drawn[k].is_first == is_first) ++k;
        const double* const from = slopes.data() + begin;
        if (is_first) {
          loops.set(&rows[begin], from, &points[begin], ridge_, k - begin, d_, &to[begin]);
        } else {
          loops.add(&rows[begin], from, k - begin, d_, &to[begin]);
        }
      }
    });
  }

  double drawn_loss(const Draw& draw, std::span<const double> x) const override {
    double sum = ridge_ / 2 * dot(x.data(), x.data(), x.size());
    const double share = 1. / (batch_ > 0 ? batch_ : samples_.per_worker());
    for_each_drawn(samples_, batch_, draw, [&](std::span<const Drawn> drawn) {
      for (const auto [worker, row, is_first] : drawn) {
        const double s = dot(samples_.row(row), &x[worker * d_], d_);
        sum += Loss::value(s, target(row)) * share;
      }
    });
    return sum / workers();
  }

  double loss(std::span<const double> point) const override {
    double sum = 0;
    for (std::size_t row = 0; row < samples_.count(); ++row) {
      sum += Loss::value(dot(samples_.row(row), point.data(), d_), target(row));
    }
    return sum / static_cast<double>(samples_.count()) +
           ridge_ / 2 * dot(point.data(), point.data(), d_);
  }

  /// Newton's method with steps cut in half while they do not descend. Once a step is small its
  /// square is below the rounding of f, and the one after it is exact.
  std::vector<double> minimiser() const override {
    Eigen::VectorXd x = Eigen::VectorXd::Zero(dimension());
    for (bool is_close = false; !is_close;) {
      const Eigen::VectorXd step = newton_step(x);
      is_close = step.norm() <= 1e-7 * (1 + x.norm());
      const double before = loss_at(x);
      double length = 1;
      while (!is_close && length > 1e-9 && !(loss_at(x - length * step) < before)) length /= 2;
      x -= length * step;
      is_close = is_close || length <= 1e-9;
    }
    return {x.data(), x.data() + x.size()};
  }

 private:
  double target(std::size_t row) const {
    if constexpr (Loss::kHasTarget) return samples_.target(row);
    return 1;
  }

  double loss_at(const Eigen::VectorXd& x) const { return loss({x.data(), d_}); }

  Eigen::VectorXd newton_step(const Eigen::VectorXd& x) const {
    const auto d = static_cast<Eigen::Index>(d_);
    Eigen::MatrixXd hessian = Eigen::MatrixXd::Zero(d, d);
    Eigen::VectorXd gradient = Eigen::VectorXd::Zero(d);
    for (std::size_t row = 0; row < samples_.count(); ++row) {
      const Eigen::VectorXd a =
          Eigen::Map<const Eigen::VectorXf>(samples_.row(row), d).cast<double>();
      const double s = a.dot(x);
      gradient += Loss::slope(s, target(row)) * a;
      hessian.selfadjointView<Eigen::Lower>().rankUpdate(a, Loss::curvature(s, target(row)));
    }
    const auto count = static_cast<double>(samples_.count());
    hessian = hessian.selfadjointView<Eigen::Lower>();
    hessian = hessian / count + ridge_ * Eigen::MatrixXd::Identity(d, d);
    gradient = gradient / count + ridge_ * x;
    // The complete decomposition is for data that leave a direction open.
    return hessian.completeOrthogonalDecomposition().solve(gradient);
  }

  Samples samples_;
  int batch_;
  double ridge_;
  std::size_t d_;
};

// Streams of the seed that samples.cpp does not use.
constexpr std::uint64_t kTargets = 1;

}  // namespace

std::unique_ptr<const Problem> make_least_squares(const SyntheticSpec& spec) {
  Rng rng(spec.seed, kTargets);
  Samples samples = linear_samples(spec, true, [&](std::span<float> row, float product) {
    row.back() = product + static_cast<float>(spec.noise * rng.normal());
  });
  return std::make_unique<const LinearModel<Squares>>(std::move(samples), spec.batch, spec.ridge);
}

std::unique_ptr<const Problem> make_logistic(const SyntheticSpec& spec) {
  Rng rng(spec.seed, kTargets);
  Samples samples = linear_samples(spec, false, [&](std::span<float> row, float product) {
    if (rng.uniform() <= 1 / (1 + std::exp(-static_cast<double>(product)))) return;
    for (float& a : row) a = -a;
  });
  return std::make_unique<const LinearModel<Logistic>>(std::move(samples), spec.batch, spec.ridge);
}

}  // namespace gossamer
