#pragma once
/// Writes what a simulation recorded as a trace for Perfetto or chrome://tracing.

#include <ostream>

#include "gossamer/base/cluster.h"
#include "gossamer/sim/simulate.h"

namespace gossamer {

/// Chrome's JSON: a process per worker, with a track for what it does and one per bucket for its
/// exchanges; and a process for the links, with one track per ordered pair of workers that shows
/// when bytes of each message moved. Times are in µs, with the nanoseconds behind the point. The
/// result must have a timeline, messages or both.
void write_trace(std::ostream& out, const SimResult& result, const HostShape& shape);

}  // namespace gossamer
