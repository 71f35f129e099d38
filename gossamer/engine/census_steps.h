#pragma once
/// In which steps a census is taken, and from which one on it counts.

#include <cstdint>

namespace gossamer {

/// One begins after so many steps, and again after as many more.
inline constexpr std::int64_t kStepsOfACensus = 16;

/// Exchanges that are under way, or expected, when rounds are formed anew.
inline constexpr std::int64_t kExchangesAhead = 2;

/// A worker that comes back after `steps` takes part in the census that begins next, which counts
/// once another one begins. The steps done before its edges are on; `every`: kStepsOfACensus, or 0
/// where there is none, and edges are on at once.
constexpr std::int64_t steps_before_edges(std::int64_t steps, std::int64_t every) {
  return every == 0 ? steps : (steps / every + 2) * every + kExchangesAhead;
}

/// The most of its own steps that a worker does alone after it has come back.
inline constexpr std::int64_t kStepsUntilEdges = steps_before_edges(0, kStepsOfACensus);

}  // namespace gossamer
