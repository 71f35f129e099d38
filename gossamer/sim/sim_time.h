#pragma once
/// The clock of the simulator: whole nanoseconds, so that equal runs are equal to the bit.

#include <chrono>
#include <cmath>

namespace gossamer {

using SimTime = std::chrono::nanoseconds;

/// The nearest nanosecond to a number of seconds below 2⁶² ns.
inline SimTime nearest_ns(double seconds) { return SimTime(std::llround(seconds * 1e9)); }

inline double to_seconds(SimTime time) { return static_cast<double>(time.count()) * 1e-9; }

}  // namespace gossamer
