#pragma once
/// Step times in closed form: all-reduce against decentralized, in units of the compute time.

namespace gossamer {

/// What the closed forms need. All times are in units of the mean compute time of a step.
struct StepRatios {
  double gamma = 0;  ///< all-reduce communication time / compute time
  double omega = 1;  ///< communication time of an exchange / that of the all-reduce
  int buckets = 1;   ///< B: how many equal pieces are communicated one after the other
  double forward_share = 1.0 / 3;  ///< φ: the part of the compute time before the first gradient
};

/// T_AR = max(1 + γ/B, φ + (1 − φ)/B + γ): bucket b of B is sent once its gradient is there, one
/// after the other, and the next step starts when all have arrived. Note [Runtime model]: the
/// quantities γ, ω and σ are those of Wang et al., "From promise to practice" (ICLR 2025), whose
/// equations are not in the material at hand; these forms are the σ = 0 case of the recursion in
/// max_plus.h and come within a few points of the published speed-ups (published_fit_test.cpp).
/// All functions of this file throw std::invalid_argument for ratios that make no sense.
double allreduce_time(const StepRatios& ratios);

/// The same where the slowest of the workers computes for `slowest` ≥ 0 instead of 1: gradients of
/// a bucket are complete when the slowest has its own. With slowest = 1 + σκ_n the mean over
/// independent jitter, as long as one and the same term of the maximum counts.
double allreduce_time(const StepRatios& ratios, double slowest);

/// T_D = max(1, ωγ): what is sent at the end of a step is needed at the end of the next.
double decentralized_time(const StepRatios& ratios);

/// 1 − T_D/T_AR, the convention of all published figures.
double speed_up(const StepRatios& ratios);

/// Step times of all-reduce and of a decentralized method.
struct StepPair {
  double allreduce = 0;
  double decentralized = 0;
  double speed_up() const { return 1 - decentralized / allreduce; }
};

/// κ_n: the expected maximum of n ≥ 1 independent standard normals, by numerical integration (1e-12
/// relative for n > 1; κ_1 = 0).
double expected_maximum_of_normals(int n);

/// T_AR(0) + σκ_n: independent normal compute times of standard deviation σ, where computing is
/// what takes the time (1 + γ/B is the larger term). σ in units of the compute time.
double allreduce_time_with_stragglers(const StepRatios& ratios, double sigma, int workers);

/// T_AR with slowest = 1 + σκ_n, and T_D, to which independent jitter adds little: exact for σ = 0.
StepPair closed_step_times(const StepRatios& ratios, double sigma, int workers);

}  // namespace gossamer
