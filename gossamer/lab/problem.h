#pragma once
/// What virtual workers minimise: f(x) = (1/n) Σ_i f_i(x), where worker i sees f_i only.

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <vector>

namespace gossamer {

/// Which samples are drawn: they depend on these numbers and on the worker, on nothing else.
struct Draw {
  std::uint64_t seed = 1;
  std::int64_t step = 0;  ///< from 0
};

/// n functions of the same d variables. Rows are workers: `x` and `g` below hold n·d numbers.
class Problem {
 public:
  Problem(int workers, int dimension) : workers_(workers), dimension_(dimension) {}
  virtual ~Problem() = default;

  int workers() const { return workers_; }
  int dimension() const { return dimension_; }
  std::size_t size() const {
    return static_cast<std::size_t>(workers_) * static_cast<std::size_t>(dimension_);
  }

  /// g ← what each worker's samples of the step say of ∇f_i at its own x.
  virtual void gradients(const Draw& draw, std::span<const double> x,
                         std::span<double> g) const = 0;
  /// The mean over the workers of the loss of those samples, each at its own x.
  virtual double drawn_loss(const Draw& draw, std::span<const double> x) const = 0;
  /// f at one point of d numbers, from all data.
  virtual double loss(std::span<const double> point) const = 0;
  /// argmin f, to about 1e-12. May take seconds.
  virtual std::vector<double> minimiser() const = 0;

 private:
  int workers_;
  int dimension_;
};

/// f_i(x) = ½ ‖x − b_i‖²; the gradients have independent normal noise in every element.
struct QuadraticSpec {
  int dimension = 1;
  std::vector<double> centres;  ///< b, n·d numbers
  double noise = 0;             ///< its standard deviation
};
std::unique_ptr<const Problem> make_quadratic(QuadraticSpec spec);

/// Samples of a linear model: features a ~ N(0, feature_variance · I), and what each worker's own
/// model x*_i makes of them.
struct SyntheticSpec {
  int workers = 8;
  int dimension = 10;
  int samples = 2000;  ///< per worker
  int batch = 1;       ///< samples per worker and step, drawn with replacement; 0: all of them
  double feature_variance = 1;
  /// Each worker's own model is x*_i = model_norm · ((1 − h) u + h u_i) with random directions u,
  /// u_i: h = 0: the same for all; 1: each its own.
  double heterogeneity = 0;
  double model_norm = 1;
  double noise = 1;  ///< least squares: of the targets, its standard deviation
  double ridge = 0;  ///< r: r/2 ‖x‖² is added to each f_i
  std::uint64_t seed = 1;
};

/// f_i(x) = mean ½ (a·x − b)² over its samples, b = a·x*_i + noise.
std::unique_ptr<const Problem> make_least_squares(const SyntheticSpec& spec);

/// f_i(x) = mean log(1 + exp(−y a·x)) over its samples, with y = 1 at probability 1/(1 +
/// exp(−a·x*_i)), else −1.
std::unique_ptr<const Problem> make_logistic(const SyntheticSpec& spec);

/// Images with a class each, as rows of features.
struct Images {
  int dimension = 0;
  int classes = 0;
  std::vector<double> features;  ///< in [0, 1], and a 1 at the end of each row
  std::vector<int> labels;
};

/// Reads two IDX files; squares of `pool` × `pool` pixels become one feature, their mean. Throws
/// IoError for files that are broken or do not fit each other.
Images read_images(const std::filesystem::path& images, const std::filesystem::path& labels,
                   int pool);

/// How the images are dealt to the workers, equally many to each; a rest is left out.
enum class Split {
  iid,       ///< at random
  by_class,  ///< sorted by class: a worker sees one class or two
};

/// f_i(x) = mean −log softmax(X a)[class] over the worker's images + r/2 ‖x‖², x the matrix X row
/// by row.
struct SoftmaxSpec {
  int workers = 16;
  int batch = 1;  ///< 0: all
  double ridge = 1e-2;
  Split split = Split::iid;
  std::uint64_t seed = 1;
};
std::unique_ptr<const Problem> make_softmax(const Images& images, const SoftmaxSpec& spec);

}  // namespace gossamer
