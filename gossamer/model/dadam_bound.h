#pragma once
/// The convergence bound of decentralized Adam, term by term.

#include <cstdint>
#include <span>
#include <string_view>

namespace gossamer {

/// What Theorem 4.1 of the poster "Efficient Decentralized Training of DNNs" (Wang, KTH) is about:
/// DAdam with step size α on an L-smooth loss of D parameters whose gradients have entries below R.
struct DAdamSetting {
  double step_size = 1e-3;  ///< α
  double beta1 = 0.9;       ///< 0 < β₁ < β₂ < 1
  double beta2 = 0.999;
  double epsilon = 1e-8;      ///< ε
  double steps = 0;           ///< T > β₁/(1 − β₁)
  double parameters = 1;      ///< D
  double gradient_bound = 1;  ///< R
  double smoothness = 1;      ///< L
  double excess_loss = 1;     ///< F(x̄⁰) − F*
  double lambda = 0;          ///< λ: how strongly a round mixes; see effective_rho()
};

/// E‖∇F(x̄^τ)‖² ≤ optimization + (noise + curvature + momentum + disagreement) · per_step, with
///   optimization = 4R (F(x̄⁰) − F*)/(α T̃),  T̃ = T − β₁/(1 − β₁),
///   per_step     = ln(1 + R/(ε(1 − β₂)))/T̃ − (T/T̃) ln β₂,
///   noise        = 24 D R² √(1−β₁) / (√(1−β₂) (1−β₁/β₂)^{3/2}),
///   curvature    = 2 α D L R (1−β₁) / ((1−β₂)(1−β₁/β₂)),
///   momentum     = 4 α² L² D β₁ / ((1−β₁/β₂)(1−β₂)^{3/2}),
///   disagreement = 8 α² (1+λ²) R L² D √(1−β₁) / ((1−λ²)² (1−β₂)(1−β₁/β₂) √ε),
/// as printed. Only the last depends on λ and is the price of decentralization; it is infinite at λ
/// = 1, which is what a single round of a one-peer schedule has. Units: those of ‖∇F‖².
struct DAdamBound {
  double optimization = 0;
  double noise = 0;
  double curvature = 0;
  double momentum = 0;
  double disagreement = 0;
  double per_step = 0;

  /// The theorem's E.
  double accumulated() const { return noise + curvature + momentum + disagreement; }
  double total() const { return optimization + accumulated() * per_step; }
};

/// Throws std::invalid_argument for what the theorem does not cover.
DAdamBound dadam_bound(const DAdamSetting& setting);

/// A summand of the bound: what `value` points at, times per_step unless it is the first.
struct DAdamTerm {
  std::string_view name;
  std::string_view formula;  ///< in ASCII
  double DAdamBound::*value = nullptr;
  bool times_per_step = true;
};

/// The five, as printed.
std::span<const DAdamTerm> dadam_terms();

/// What ‖∇F‖² is below before any step, by the assumptions alone: D R² everywhere, and at the start
/// 2 L (F(x̄⁰) − F*) as for every L-smooth function. The smaller of them.
double known_at_start(const DAdamSetting& setting);

enum class BoundVerdict : std::uint8_t {
  informative,
  vacuous,   ///< not below known_at_start(): it says nothing about training
  infinite,  ///< λ = 1
};

BoundVerdict verdict_on(const DAdamBound& bound, const DAdamSetting& setting);
std::string_view name_of(BoundVerdict verdict);

}  // namespace gossamer
