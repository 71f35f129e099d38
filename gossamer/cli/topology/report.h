#pragma once
/// Everything `gossamer topology` shows, as values; the table, the JSON and the picture print it.

#include <string>
#include <vector>

#include "gossamer/graph/schedule.h"

namespace gossamer {

/// What one round costs, in payloads (one payload: all parameters once).
struct RoundCost {
  int least_neighbours = 0;  ///< senders other than itself that a worker hears
  int most_neighbours = 0;
  double messages_per_worker = 0;
  double inside_per_worker = 0;   ///< sent to mates on the same host
  double between_per_worker = 0;  ///< sent to other hosts
  double between_per_host = 0;    ///< mean over hosts
  double busiest_host = 0;        ///< the host that sends most
  double rho = 0;
};

struct TopologyReport {
  std::string name;  ///< canonical
  std::vector<std::string> modifiers;
  Schedule schedule;
  std::vector<Round> rounds;  ///< one period, or the first few where rounds never repeat
  std::vector<RoundCost> costs;
  double rho = 0;
  double period_contraction = 0;
  bool exact_average = false;
  double bytes_per_host_per_step = 0;  ///< payloads, mean over hosts and rounds
  double messages_per_worker_per_step = 0;
};

/// Whether its rounds are doubly stochastic: where only columns of W sum to 1, a distance to the
/// average says nothing, and none is shown.
inline bool averages(const Schedule& schedule) {
  return schedule.stochasticity == Stochasticity::doubly;
}

TopologyReport report_on(std::string name, std::vector<std::string> modifiers, Schedule schedule);

/// The table for people; `bold` marks the title with terminal codes.
std::string to_text(const TopologyReport& report, bool bold);

/// One JSON object with a line per key and per round.
std::string to_json(const TopologyReport& report);

/// A picture of the rounds side by side: one SVG file without outside resources.
std::string to_svg(const TopologyReport& report);

/// A weight or an amount for people: "1/3" where a small fraction hits it, else up to four digits.
std::string as_fraction(double value);

}  // namespace gossamer
