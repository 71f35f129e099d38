#pragma once
/// How many more steps a candidate needs than all-reduce to reach the same loss.

#include <string>
#include <vector>

#include "gossamer/plan/candidate.h"
#include "gossamer/plan/workload_file.h"

namespace gossamer {

/// A part of the ratio, and where it comes from.
struct StepsPart {
  double more = 0;  ///< so much of all-reduce's steps in addition
  std::string why;
};

struct StepsRatio {
  double ratio = 1;  ///< 1 + the sum of the parts; NaN where nothing is known of the pattern
  std::vector<StepsPart> parts;
};

/// How well a candidate's schedule mixes.
struct MixingRate {
  int workers = 1;
  double rho = 0;    ///< lasting ρ of the schedule (model/convergence.h)
  double taken = 1;  ///< late = skip: share of the payloads that were not skipped
  /// Of gradients that are averaged: how many a worker's mean is of, 1/Σ_j w_ij², on average.
  double averaged = 1;
};

/// That number for a schedule.
double averaged_workers(const Schedule& schedule);

/// Whether the steps that a pattern needs were measured.
bool is_measured(const MethodSpec& method);

/// Note [Steps ratio]: an estimate from measurements, not a bound. What counts:
/// - Measured by the user (`steps_ratio` of the workload): that, beside codec and skipped payloads.
/// - Disagreement: c n (ρ/(1 − ρ))²/K for n workers, K steps of all-reduce and the lasting ρ of the
///   schedule (model/convergence.h), with c = .22. The form is that of transient iterations;
///   c is fitted to the errors of decentralized momentum SGD with 32 workers after 5700 steps over
///   parallel SGD's: 1.01 static exponential, 1.03 one-peer exponential and AER, 1.09 torus, 4.5
///   one-peer ring, 6.3 ring. It is hopeless for the star (21 measured, 2.2 so), whose hub forwards
///   everybody's noise.
/// - Adam normalises each worker's own noisy gradient: .15 more for all topologies alike, the
///   complete one among them (docs/results.md; 8 workers, small batches). With a noise scale and a
///   batch, .15 (1 − 1/(1 + s)) of it with s = noise_scale/(batch per worker), so that nothing is
///   left where gradients have no noise. gradient_gossip normalises a mean of m gradients, so that
///   (1/m − 1/n)/(1 − 1/n) of it is left, nothing where all are averaged.
/// - Codecs: .005 for bf16 and .01 for int8, whose losses were .13 % and .30 % behind.
/// - Payloads that are skipped: each leaves 1 − ρ out, so that ρ becomes 1 − taken (1 − ρ).
/// Of other patterns than cwa, gradient_gossip and those that average all gradients nothing was
/// measured, so that the ratio is NaN, unless the user has measured it. Infinite for ρ = 1, a
/// schedule that never averages everything. All-reduce: 1, but for its codec.
StepsRatio steps_ratio(const MethodSpec& candidate, const MixingRate& mixing, const Target& target);

/// Sentences: what its parts are measured on, and what the ratio does not count because nobody has
/// measured it. Empty for all-reduce, and where the user has measured the ratio.
std::vector<std::string> limits_of_ratio(const MethodSpec& candidate, const Target& target);

}  // namespace gossamer
