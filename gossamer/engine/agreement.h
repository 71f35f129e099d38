#pragma once
/// Workers find out that they were told different things before that costs a run.

#include <string>

#include "gossamer/engine/collectives.h"

namespace gossamer {

/// Compares `description` with rank 0's, line by line. Where any worker's differs, throws
/// std::invalid_argument on all: on those that differ with their first different line, on the
/// others with the ranks that differ. `place` and `remedy` are for the message. Collective.
void require_same(Collectives& collectives, const std::string& place,
                  const std::string& description, const std::string& remedy);

}  // namespace gossamer
