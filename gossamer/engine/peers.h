#pragma once
/// Whom a worker talks to in a run, known beforehand: transports make their connections by it.

#include <vector>

#include "gossamer/engine/options.h"
#include "gossamer/engine/seating.h"
#include "gossamer/transport/transport.h"

namespace gossamer {

/// Everybody takes part, and a worker's position is its rank. Throws std::invalid_argument for
/// options that do not fit each other or the transport.
Seating seating_of_all(const EngineOptions& options, const TransportInfo& info);

/// The ranks, ascending, that worker `rank` of an engine with these options exchanges anything
/// with: in any round of its schedule, for a bucket of any size, or in a collective. Symmetric.
/// Everybody else for schedules that are not periodic.
std::vector<int> peers_of(const EngineOptions& options, int rank);

/// Those of them with whom it has rounds, be there collectives or not.
std::vector<int> neighbours_of(const EngineOptions& options, int rank);

/// Those without whom it is alone: everybody else, but where rounds stay among its neighbours: with
/// Late::skip.
std::vector<int> company_of(const EngineOptions& options, int rank);

}  // namespace gossamer
