#pragma once
/// Writes what a simulation recorded as a trace for Perfetto or chrome://tracing.

#include <ostream>

#include "gossamer/base/timeline.h"
#include "gossamer/sim/simulate.h"

namespace gossamer {

/// The timeline and the messages of the result, as far as they were recorded.
inline void write_trace(std::ostream& out, const SimResult& result, const HostShape& shape) {
  write_trace(out, result.timeline, result.messages, shape);
}

}  // namespace gossamer
