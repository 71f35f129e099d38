#pragma once
/// What a rule works on: one worker's flat vectors over one range of elements, and the step's
/// numbers.

#include <array>
#include <cstdint>
#include <span>

#include "gossamer/kernels/mix.h"

namespace gossamer {

class WorkerPool;

/// Hyperparameters of a parameter group; an optimizer reads those it knows.
struct Hyper {
  double lr = 1e-3;
  double weight_decay = 0;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double eps = 1e-8;
  double noise_share = 1;  ///< Adam: the share of the gradient's noise in the denominator, mix_adam
  double momentum = 0.9;
  double dampening = 0;
  bool nesterov = false;
  int accumulate = 4;     ///< AccumAdam's s: iterations per update of its momenta
  std::int64_t t = 0;     ///< the coming update is the group's t-th; 0: as many as the run has done
  double grad_scale = 1;  ///< multiplies every gradient, e.g. by −1 to maximize
  double consensus = 1;   ///< dsgd_ac, cwa_moments: γ, the share of W x − x that an update takes
  /// slowmo, noloco: an outer step in round k where (k + 1) mod outer_every = 0; 0: in none.
  int outer_every = 0;
  double outer_momentum = 0.5;
  double outer_lr = 1;
};

/// At most this many state vectors per optimizer or pattern, and payloads per pattern.
inline constexpr std::size_t kMaxVectors = 3;

/// The step's numbers, equal for all elements of a parameter group.
struct StepNumbers {
  Hyper hyper;
  std::int64_t t = 1;      ///< this is the t-th update, from 1
  double grad_scale = 1;   ///< multiplies every gradient (clipping)
  std::int64_t round = 0;  ///< number of the schedule's round that this update mixes with
  double weight = 1;       ///< this worker's of Schedule::weights before that round
};

/// Whether slowmo and noloco make an outer step in this round.
inline bool has_outer_step(const Hyper& hyper, std::int64_t round) {
  return hyper.outer_every > 0 && (round + 1) % hyper.outer_every == 0;
}

/// All vectors have the same length. `mixes[k]` is what arrived for payload k of the stage that has
/// come; see Note [Two stages] in pattern.h.
template <class T>
struct PassArgs {
  std::span<T> x;
  std::span<T> out = {};  ///< where `combine` leaves the new x; empty: over x. atc ignores it
  std::span<const T> g;
  std::array<std::span<T>, kMaxVectors> optimizer_state;
  std::array<std::span<T>, kMaxVectors> pattern_state;
  std::array<Mix<T>, kMaxVectors> mixes;
  StepNumbers numbers;
  WorkerPool* pool = nullptr;  ///< kernel threads; null: the calling thread does it all
};

}  // namespace gossamer
