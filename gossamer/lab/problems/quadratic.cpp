#include <utility>

#include "gossamer/base/errors.h"
#include "gossamer/base/rng.h"
#include "gossamer/lab/problem.h"

namespace gossamer {
namespace {

class Quadratic final : public Problem {
 public:
  explicit Quadratic(QuadraticSpec spec)
      : Problem(static_cast<int>(spec.centres.size()) / spec.dimension, spec.dimension),
        spec_(std::move(spec)) {}

  void gradients(const Draw& draw, std::span<const double> x, std::span<double> g) const override {
    Rng rng(draw.seed, static_cast<std::uint64_t>(draw.step));
    for (std::size_t k = 0; k < g.size(); ++k) {
      const double noise = spec_.noise > 0 ? spec_.noise * rng.normal() : 0;
      g[k] = x[k] - spec_.centres[k] + noise;
    }
  }

  double drawn_loss(const Draw&, std::span<const double> x) const override {
    double sum = 0;
    for (std::size_t k = 0; k < x.size(); ++k) {
      sum += (x[k] - spec_.centres[k]) * (x[k] - spec_.centres[k]);
    }
    return sum / 2 / workers();
  }

  double loss(std::span<const double> point) const override {
    std::vector<double> everywhere;
    for (int i = 0; i < workers(); ++i) {
      everywhere.insert(everywhere.end(), point.begin(), point.end());
    }
    return drawn_loss({}, everywhere);
  }

  std::vector<double> minimiser() const override {
    const auto d = static_cast<std::size_t>(dimension());
    std::vector<double> mean(d);
    for (std::size_t k = 0; k < size(); ++k) mean[k % d] += spec_.centres[k] / workers();
    return mean;
  }

 private:
  QuadraticSpec spec_;
};

}  // namespace

std::unique_ptr<const Problem> make_quadratic(QuadraticSpec spec) {
  const auto d = static_cast<std::size_t>(spec.dimension);
  if (spec.dimension < 1 || spec.centres.empty() || spec.centres.size() % d != 0) {
    fail_argument({.place = "lab",
                   .what = "a quadratic needs centres of " + std::to_string(spec.dimension) +
                           " numbers for each worker",
                   .got = std::to_string(spec.centres.size()) + " numbers"});
  }
  return std::make_unique<const Quadratic>(std::move(spec));
}

}  // namespace gossamer
