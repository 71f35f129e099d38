#pragma once
/// For tests: random courses of jobs whose workers are killed, frozen or parted.

#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "gossamer/base/cluster.h"
#include "gossamer/base/index.h"
#include "gossamer/engine/options.h"

namespace gossamer::simulation {

/// What happens to a worker's life.
struct Fate {
  enum class Kind { killed, killed_sending, frozen };
  Kind kind = Kind::killed;
  double at_s = 0;   ///< of the whole job; killed_sending: of the life
  int send = 0;      ///< killed_sending
  double for_s = 0;  ///< frozen
};

struct Course {
  std::string topology;
  std::string pattern;
  std::vector<int> per_host;
  UpdateAt update = UpdateAt::step;
  int calls_every = 25;  ///< collective calls, in steps
  double step_s = 0.003;
  std::vector<std::vector<Fate>> fates;  ///< by rank and life
  std::vector<bool> comes_back;          ///< by rank, after its last fate
  double part_at_s = 0;                  ///< 0: the network stays whole
  double part_for_s = 0;
  std::set<int> parted;
  double strangers_for_s = 0;        ///< as NetworkOptions
  std::map<int, double> joins_at_s;  ///< by rank, of those that do not begin with the others

  bool is_silent = false;  ///< somebody may be for long

  bool stays_away(int rank) const { return !fates[at(rank)].empty() && !comes_back[at(rank)]; }
  int workers() const { return HostShape{per_host}.workers(); }
  /// With the longest time until a silence has been noticed.
  double last_fault_s() const {
    double last_s = part_at_s + part_for_s;
    for (const auto& of_worker : fates) {
      for (const Fate& fate : of_worker) last_s = std::max(last_s, fate.at_s + fate.for_s);
    }
    for (const auto& [rank, when_s] : joins_at_s) last_s = std::max(last_s, when_s);
    return last_s + (is_silent ? 2 : 0);
  }
  bool learns() const {
    return pattern == "extra" || pattern == "gradient_tracking" || pattern == "exact_diffusion";
  }
};

/// Workers are killed, between whatever and while they send, and come back or not.
Course course_of(std::uint64_t seed);
/// The same, and some are silent for long: frozen, or parted from the others.
Course silent_course_of(std::uint64_t seed);
/// The same as the first, and some workers begin later than the others.
Course growing_course_of(std::uint64_t seed);
std::string to_string(const Course& course);

}  // namespace gossamer::simulation
