#pragma once
/// How long exchanges were under way, and how much of that nobody noticed.

#include <vector>

#include "gossamer/transport/transport.h"

namespace gossamer {

struct Interval {
  Clock::time_point begin;
  Clock::time_point end;
};

/// Seconds that lie in at least one interval of `on` and in none of `off`; intervals may overlap,
/// and those that end before they begin are empty.
double seconds_in(const std::vector<Interval>& on, const std::vector<Interval>& off);

/// What became of one step's exchanges: from their launch until the last payload was there, and
/// when the worker waited for them.
struct Overlap {
  std::vector<Interval> journeys;
  std::vector<Interval> waits;

  /// Seconds in which something was under way and the worker was not waiting.
  double hidden_s() const { return seconds_in(journeys, waits); }
  double exposed_s() const { return seconds_in(waits, {}); }
};

}  // namespace gossamer
