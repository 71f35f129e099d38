#pragma once
/// Parts of the workers between which nothing ever travels.

#include <cstdint>
#include <vector>

#include "gossamer/graph/schedule.h"

namespace gossamer {

/// The workers in the parts that a whole period leaves apart, each ascending, by their first ones:
/// one part where everybody mixes with everybody in the end. Also one where that is not known:
/// without a period, with rounds that follow the loss, and with a period too long to look at. Cost:
/// that of the rounds, until there is one part.
std::vector<std::vector<int>> parts_of(const Schedule& schedule);

/// How many parts these first rounds leave apart.
int count_parts(const Schedule& schedule, std::int64_t rounds);

/// Throws std::invalid_argument that names the parts where there are several. A schedule in which
/// nobody ever mixes is local training, and passes.
void check_one_part(const Schedule& schedule);

}  // namespace gossamer
