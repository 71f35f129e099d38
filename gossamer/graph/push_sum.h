#pragma once
/// Push-sum without traffic of its own: the weights that follow from the schedule.

#include <cstdint>

#include "gossamer/graph/schedule.h"

namespace gossamer {

/// For a schedule of column-stochastic rounds A(t): v(0) = 1, v(t + 1) = A(t) v(t) as `weights`,
/// and as rounds the row-stochastic w_ij = a_ij v_j(t)/v_i(t + 1). With them Σ_i v_i(t) x_i(t) is
/// the same for all t, and with x = u/v, x ← W x is u ← A u (Kempe et al. 2003). The result never
/// repeats. A doubly stochastic schedule, for which v = 1, is returned as it is.
///
/// Apply it after all other modifiers. v(t) is found by going on from the nearest earlier t that
/// was kept: a call costs O(non-zeros) where t grows step by step, and memory for one v per 256
/// steps. From any thread. Throws std::invalid_argument for a schedule that is row stochastic or
/// driven by the loss; a round in which a worker neither keeps nor hears anything throws when it is
/// reached.
///
/// With `first`, the rounds begin with that one, and all weigh alike until then.
Schedule push_sum_rounds(Schedule schedule, std::int64_t first = 0);

}  // namespace gossamer
