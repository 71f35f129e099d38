#pragma once
/// Functions Schedule → Schedule. A result whose period does not fit an int has period 0.

#include <cstdint>

#include "gossamer/graph/schedule.h"

namespace gossamer {

/// PGA: round k is the global average if (k + 1) mod H = 0, else the schedule's round k. H ≥ 1.
Schedule with_global_average(Schedule schedule, int every);

/// AGA: like PGA, but after each global average the distance H to the next is chosen anew,
/// H = ceil((f(x⁰)/f(x at that average))^(1/4) · initial_every). Of `losses` the entry of step 0
/// and the last with step ≤ t count: {k + 1, f} stands for the global average that round k was.
/// Until a newer entry arrives the distance stays as it is; without entries it is initial_every.
Schedule with_adaptive_global_average(Schedule schedule, int initial_every);

/// The distance that AGA chooses; initial_every where the losses do not say (not positive, finite).
std::int64_t adaptive_distance(double first_loss, double last_loss, int initial_every);

/// Local updates: W = I except in every H-th step (k + 1) mod H = 0; the schedule goes on by one
/// round per step that mixes. H ≥ 1.
Schedule with_local_steps(Schedule schedule, int every);

/// (I + W)/2 in every round, which has no eigenvalue below 0 where W is symmetric.
Schedule lazy(Schedule schedule);

/// k rounds of the schedule in every step, as one round with their product. k ≥ 1.
Schedule with_rounds_per_step(Schedule schedule, int rounds);

/// A schedule between hosts (one "worker" per host of `shape`) with averaging inside each host.
/// With C the matrix between hosts, W[i on a][j on b] = C[a][b]/L_b for equal hosts of L workers.
/// For unequal hosts, partitions average over all workers of their hosts; other rounds move C[a][b]
/// · min(L_a, L_b) of the hosts' weight if C is symmetric, else C[a][b] · min over all L: doubly
/// stochastic again. Throws std::invalid_argument if the number of hosts differs, where only the
/// columns of C sum to 1, and for unequal hosts where only the rows do.
Schedule across_hosts(Schedule between, const HostShape& shape);

}  // namespace gossamer
