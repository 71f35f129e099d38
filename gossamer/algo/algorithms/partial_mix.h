#pragma once
/// A share of a mix: x + γ (W x − x).

#include <vector>

#include "gossamer/kernels/mix.h"

namespace gossamer {

/// W with the share γ of it, in (0, 1], and (1 − γ) of the worker's own. Holds the sources of
/// `mix`.
template <class T>
class PartialMix {
 public:
  PartialMix(const Mix<T>& whole, double gamma)
      : gamma_(gamma), sources_(whole.sources.begin(), whole.sources.end()) {
    for (Source<T>& source : sources_) source.weight *= gamma;
    own_ = 1 - gamma + gamma * whole.self_weight;
    measure_distance_ = whole.measure_distance;
  }

  Mix<T> mix() const { return {own_, sources_, measure_distance_}; }
  /// Σ (W x − x)² from what a pass with mix() measured.
  double whole_distance(double measured) const { return measured / (gamma_ * gamma_); }

 private:
  double gamma_;
  std::vector<Source<T>> sources_;
  double own_ = 1;
  bool measure_distance_ = false;
};

}  // namespace gossamer
