// Regularised multinomial logistic regression on images.
#include <Eigen/Dense>
#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "gossamer/base/errors.h"
#include "gossamer/lab/problems/samples.h"

namespace gossamer {
namespace {

using Matrix = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

Matrix features_of(const Samples& samples) {
  Matrix features(static_cast<Eigen::Index>(samples.count()), samples.dimension());
  for (std::size_t row = 0; row < samples.count(); ++row) {
    for (int k = 0; k < samples.dimension(); ++k) {
      features(static_cast<Eigen::Index>(row), k) = static_cast<double>(samples.row(row)[k]);
    }
  }
  return features;
}

class Softmax final : public Problem {
 public:
  Softmax(Samples samples, int classes, const SoftmaxSpec& spec)
      : Problem(samples.workers(), classes * samples.dimension()),
        samples_(std::move(samples)),
        features_(features_of(samples_)),
        classes_(classes),
        batch_(spec.batch),
        ridge_(spec.ridge) {}

  void gradients(const Draw& draw, std::span<const double> x, std::span<double> g) const override {
    for (std::size_t k = 0; k < g.size(); ++k) g[k] = ridge_ * x[k];
    const double share = 1. / (batch_ > 0 ? batch_ : samples_.per_worker());
    const auto d = static_cast<std::size_t>(samples_.dimension());
    Eigen::VectorXd p(classes_);
    for_each_drawn(samples_, batch_, draw, [&](std::span<const Drawn> drawn) {
      for (const auto [worker, row, is_first] : drawn) {
        const float* a = samples_.row(row);
        const std::size_t begin = worker * static_cast<std::size_t>(dimension());
        probabilities(a, &x[begin], p);
        p[label(row)] -= 1;
        for (int c = 0; c < classes_; ++c) {
          double* out = &g[begin + static_cast<std::size_t>(c) * d];
          const double slope = p[c] * share;
          for (std::size_t k = 0; k < d; ++k) out[k] += slope * static_cast<double>(a[k]);
        }
      }
    });
  }

  double drawn_loss(const Draw& draw, std::span<const double> x) const override {
    double sum = ridge_ / 2 * dot(x.data(), x.data(), x.size());
    const double share = 1. / (batch_ > 0 ? batch_ : samples_.per_worker());
    Eigen::VectorXd p(classes_);
    for_each_drawn(samples_, batch_, draw, [&](std::span<const Drawn> drawn) {
      for (const auto [worker, row, is_first] : drawn) {
        probabilities(samples_.row(row), &x[worker * static_cast<std::size_t>(dimension())], p);
        sum -= std::log(p[label(row)]) * share;
      }
    });
    return sum / workers();
  }

  double loss(std::span<const double> point) const override {
    const Matrix p =
        all_probabilities(Eigen::Map<const Eigen::VectorXd>(point.data(), dimension()));
    double sum = 0;
    for (Eigen::Index row = 0; row < p.rows(); ++row) {
      sum -= std::log(p(row, label(static_cast<std::size_t>(row))));
    }
    return sum / static_cast<double>(p.rows()) +
           ridge_ / 2 * dot(point.data(), point.data(), point.size());
  }

  /// Newton's method; its systems by conjugate gradients, with products by the Hessian only.
  std::vector<double> minimiser() const override {
    Eigen::VectorXd x = Eigen::VectorXd::Zero(dimension());
    for (int turn = 0; turn < kMostTurns; ++turn) {
      const Matrix p = all_probabilities(x);
      const Eigen::VectorXd g = gradient(p, x);
      if (g.norm() < 1e-13) break;
      const Eigen::VectorXd step = solve(p, g);
      const double before = loss({x.data(), static_cast<std::size_t>(dimension())});
      double length = 1;
      for (; length > 1e-6 && g.norm() > 1e-6; length /= 2) {
        const Eigen::VectorXd next = x - length * step;
        if (loss({next.data(), static_cast<std::size_t>(dimension())}) < before) break;
      }
      x -= length * step;
    }
    return {x.data(), x.data() + x.size()};
  }

 private:
  static constexpr int kMostTurns = 50;

  int label(std::size_t row) const { return static_cast<int>(samples_.target(row)); }

  /// p ← softmax(X a).
  void probabilities(const float* a, const double* x, Eigen::VectorXd& p) const {
    const auto d = static_cast<std::size_t>(samples_.dimension());
    for (int c = 0; c < classes_; ++c) p[c] = dot(a, x + static_cast<std::size_t>(c) * d, d);
    p = (p.array() - p.maxCoeff()).exp();
    p /= p.sum();
  }

  /// A row per image.
  Matrix all_probabilities(const Eigen::VectorXd& x) const {
    const Eigen::Map<const Matrix> weights(x.data(), classes_, samples_.dimension());
    Matrix p = features_ * weights.transpose();
    p.colwise() -= p.rowwise().maxCoeff();
    p = p.array().exp();
    p.array().colwise() /= p.rowwise().sum().eval().array();
    return p;
  }

  Eigen::VectorXd gradient(Matrix p, const Eigen::VectorXd& x) const {
    for (Eigen::Index row = 0; row < p.rows(); ++row) {
      p(row, label(static_cast<std::size_t>(row))) -= 1;
    }
    return flat(p) + ridge_ * x;
  }

  /// The mean over the images of slopes ⊗ features.
  Eigen::VectorXd flat(const Matrix& slopes) const {
    const Matrix sum = slopes.transpose() * features_ / static_cast<double>(samples_.count());
    return Eigen::Map<const Eigen::VectorXd>(sum.data(), sum.size());
  }

  Eigen::VectorXd times_hessian(const Matrix& p, const Eigen::VectorXd& v) const {
    const Eigen::Map<const Matrix> direction(v.data(), classes_, samples_.dimension());
    Matrix u = features_ * direction.transpose();
    const Eigen::VectorXd means = (p.array() * u.array()).rowwise().sum();
    u.colwise() -= means;
    return flat(p.array() * u.array()) + ridge_ * v;
  }

  Eigen::VectorXd solve(const Matrix& p, const Eigen::VectorXd& g) const {
    Eigen::VectorXd step = Eigen::VectorXd::Zero(g.size());
    Eigen::VectorXd rest = g;
    Eigen::VectorXd direction = rest;
    double squares = rest.squaredNorm();
    const double enough = squares * 1e-8;
    while (squares > enough) {
      const Eigen::VectorXd product = times_hessian(p, direction);
      const double length = squares / direction.dot(product);
      step += length * direction;
      rest -= length * product;
      const double before = std::exchange(squares, rest.squaredNorm());
      direction = rest + squares / before * direction;
    }
    return step;
  }

  Samples samples_;
  Matrix features_;  ///< all of them once more, in double, for sums over all data
  int classes_;
  int batch_;
  double ridge_;
};

/// Whose turn it is: equally many images for each worker, in this order.
std::vector<std::size_t> dealt(const Images& images, const SoftmaxSpec& spec) {
  std::vector<std::size_t> order(images.labels.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  Rng rng(spec.seed);
  for (std::size_t k = order.size(); k > 1; --k) std::swap(order[k - 1], order[rng.below(k)]);
  if (spec.split == Split::by_class) {
    std::ranges::stable_sort(order, {}, [&](std::size_t image) { return images.labels[image]; });
  }
  return order;
}

}  // namespace

std::unique_ptr<const Problem> make_softmax(const Images& images, const SoftmaxSpec& spec) {
  const auto workers = static_cast<std::size_t>(std::max(spec.workers, 1));
  const bool is_good =
      spec.workers >= 1 && images.labels.size() >= workers && spec.batch >= 0 && spec.ridge > 0;
  if (!is_good) {
    fail_argument({.place = "lab",
                   .what = "softmax needs workers from 1 to the number of images, a batch of 0 or "
                           "more and a ridge above 0",
                   .got = std::to_string(spec.workers) + ", " + std::to_string(spec.batch) +
                          " and " + std::to_string(spec.ridge)});
  }
  Samples samples({.workers = spec.workers,
                   .dimension = images.dimension,
                   .per_worker = static_cast<int>(images.labels.size() / workers)});
  const std::vector<std::size_t> order = dealt(images, spec);
  const auto d = static_cast<std::size_t>(images.dimension);
  for (std::size_t k = 0; k < samples.count(); ++k) {
    const double* row = &images.features[order[k] * d];
    const std::span<float> to = samples.row(k);
    for (std::size_t j = 0; j < d; ++j) to[j] = static_cast<float>(row[j]);
    to[d] = static_cast<float>(images.labels[order[k]]);
  }
  return std::make_unique<const Softmax>(std::move(samples), images.classes, spec);
}

}  // namespace gossamer
