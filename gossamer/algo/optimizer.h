#pragma once
/// The table of local optimizers: d(g, state) of x ← mix(x) + d(g, state), fused with the mix.

#include <span>
#include <string_view>

#include "gossamer/algo/pass.h"

namespace gossamer {

/// One local optimizer. A pass does x ← mix + d(g · grad_scale, state) over a range in one sweep
/// over memory and returns Σ (x − mix)² of the x before, where the mix asks for it.
struct Optimizer {
  template <class T>
  using Pass = double (*)(const PassArgs<T>& args, const Mix<T>& mix, std::span<const T> g);

  std::string_view name;
  std::string_view summary;
  std::span<const std::string_view> state;  ///< its state vectors, by torch's names; zero at first
  Pass<float> f32;
  Pass<double> f64;

  template <class T>
  Pass<T> pass() const {
    if constexpr (sizeof(T) == sizeof(float)) {
      return f32;
    } else {
      return f64;
    }
  }
};

std::span<const Optimizer> optimizers();

/// Throws std::invalid_argument that lists the valid names.
const Optimizer& find_optimizer(std::string_view name);

/// Sets a number that is a pattern's own, by its name in PatternFacts::options.
void set_option(Hyper& hyper, std::string_view name, double value);

/// Throws std::invalid_argument for a value out of its range, naming the key.
void check_hyper(const Hyper& hyper);

}  // namespace gossamer
