#pragma once
/// Convergence rates of decentralized SGD: how far optimization is after T steps, term by term.

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "gossamer/model/convergence.h"
#include "gossamer/model/order.h"

namespace gossamer {

enum class RateMethod : std::uint8_t {
  p_sgd,  ///< parallel SGD: all-reduce
  d_sgd,
  one_peer_exponential,  ///< D-SGD over that graph
  exact_diffusion,
  global_average,  ///< PGA: D-SGD with a global average every H steps
};

std::string_view name_of(RateMethod method);

struct RateTerm {
  std::string_view name;  ///< sampling, disagreement or heterogeneity
  std::span<const Factor> factors;
};

/// Note [Rates]: O(Σ terms), from the lecture "Decentralized SGD and its variants". The first term,
/// `sampling`, is that of parallel SGD with n workers; what follows is the price of
/// decentralization. Non-convex: of the mean of ‖∇f(x̄)‖² over T steps; convex: of f(x̄) − f*,
/// weighted over the steps, for strongly convex losses up to logarithms. Constants are left out,
/// the smoothness among them: good for comparisons, not for losses.
struct Rate {
  RateMethod method = RateMethod::d_sgd;
  Curvature curvature = Curvature::non_convex;
  std::span<const RateTerm> terms;
  std::string_view note;      ///< conditions; what the lecture prints otherwise
  bool power_of_two = false;  ///< proved for such n only
};

/// All rates. Of Exact-Diffusion for non-convex losses there is none that is better than that of
/// D-SGD in the network.
std::span<const Rate> convergence_rates();

/// What rates are evaluated at.
struct RateSetting {
  MixingStrength mixing;
  double steps = 1;  ///< T ≥ 1
  double sigma = 1;  ///< σ ≥ 0
  double b = 1;      ///< b ≥ 0; 0 where all workers' data come from one distribution
};

struct RateTermValue {
  std::string_view name;
  std::string order;  ///< in symbols
  double value = 0;
  /// The T from which on the term is no larger than the first: the transient iterations with σ and
  /// b in them. 0 for the first; infinity where that never comes.
  double even_from = 0;
};

struct RateValue {
  Rate rate;
  std::vector<RateTermValue> terms;
  double sum = 0;  ///< NaN where the rate needs another number of workers
};

/// All rates there. Throws std::invalid_argument for numbers out of range.
std::vector<RateValue> evaluate_rates(const RateSetting& setting);

}  // namespace gossamer
