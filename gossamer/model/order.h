#pragma once
/// Orders of growth as products of powers, such as n^3 rho^4/(1 - rho)^2: text and value.

#include <array>
#include <cstdint>
#include <span>
#include <string>

namespace gossamer {

/// What the products are of.
enum class Symbol : std::uint8_t {
  sigma,  ///< σ² bounds the variance of a worker's stochastic gradient
  b,      ///< b² bounds the mean of ‖∇f_i − ∇f‖² over the workers
  rho,    ///< ρ, how strongly a step mixes
  gap,    ///< 1 − ρ
  log_n,  ///< log₂ n
  n,      ///< workers
  H,      ///< steps from a global average to the next
  T,      ///< steps
};
constexpr std::size_t kSymbols = 8;

struct Factor {
  Symbol symbol = Symbol::n;
  double power = 0;  ///< negative: it divides; 0: it is not there
};

/// By Symbol.
using SymbolValues = std::array<double, kSymbols>;

/// In ASCII, in the order given: "sigma/sqrt(n T)", "n^3 rho^4/(1 - rho)^2"; "1" where nothing is
/// there. Powers are multiples of a half or a third.
std::string product_text(std::span<const Factor> factors);

/// Factors with power 0 count as 1, whatever their value is.
double product_value(std::span<const Factor> factors, const SymbolValues& values);

}  // namespace gossamer
