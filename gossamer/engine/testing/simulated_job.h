#pragma once
/// For tests: a job in simulated time by a course, whose workers die, come back and leave.

#include <cstdint>
#include <cstdlib>
#include <functional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "gossamer/base/cluster.h"
#include "gossamer/engine/testing/courses.h"
#include "gossamer/engine/testing/simulation.h"

namespace gossamer::simulation {

/// Rank and generation.
using LifeName = std::pair<int, std::uint64_t>;

/// Of those that are expelled, or come back to others that they cannot reach.
bool is_of_silence(const std::exception& error);

/// What became of a job.
struct Played {
  bool has_ended = false;
  double took_s = 0;
  std::uint64_t digest = 0;  ///< that equal runs have in common
  std::vector<std::string> problems = {};
  /// Nobody is left to come back to, since the last one was killed, or rightly ended: it heard too
  /// few of the others. See Note [Cut off].
  bool is_lost = false;
  std::set<int> through = {};        ///< ranks that have come to the end
  std::set<LifeName> expelled = {};  ///< or never let in, by silence
};

/// With GOSSAMER_TELL in the environment it says on stderr what happens.
class SimulatedJob {
 public:
  /// What a worker does in a life, between begin_work() and end_work().
  using Work = std::function<void(SimulatedJob& job, Transport& transport, LifeName life)>;

  /// Plays the course to its end.
  SimulatedJob(const Course& course, std::uint64_t seed, Work work);

  const HostShape& shape() const { return shape_; }

  // What lives call.
  Rng& rng() { return simulation_.rng(); }
  void begin_work(LifeName life);
  /// Whether nothing is to happen any more, and all are there that are to be.
  bool is_settled() const;
  /// It is through, and stays until all others are: they may need what it has sent.
  void end_work(Transport& transport, LifeName life);

  void tell(LifeName life, const std::string& text) const;

  const Played& played() const { return played_; }

 private:
  Simulation::Life life_of(int rank);
  void fail(LifeName life, const std::exception& error);
  void end_life(int rank);
  void lose_all(const std::string& failure);
  void meet_fate(LifeName life);

  const bool tells_ = std::getenv("GOSSAMER_TELL") != nullptr;
  const Course course_;
  const HostShape shape_;
  const Work work_;
  Simulation simulation_;
  const Time begin_;
  std::vector<std::size_t> next_fate_;      ///< by rank
  std::vector<std::uint64_t> generations_;  ///< likewise, of the next life
  std::vector<int> tries_;                  ///< likewise
  std::set<int> at_work_;
  std::string failure_;  ///< of the one at work that ends now; empty: it was killed
  std::set<int> doomed_;
  bool may_try_again_ = false;
  Played played_;
  int open_ = 0;  ///< those that are to come to the end
};

}  // namespace gossamer::simulation
