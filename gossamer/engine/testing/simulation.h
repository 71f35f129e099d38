#pragma once
/// For tests: all workers of a job in one process, one at a time, in simulated time; equal seeds
/// give equal runs. See Note [Simulated time] and Note [Simulated network].

#include <cstdint>
#include <functional>
#include <memory>
#include <queue>
#include <set>
#include <tuple>
#include <vector>

#include "gossamer/engine/testing/simulated_network.h"

namespace gossamer::simulation {

/// The worker has been killed: no std::exception, so that nobody handles it.
struct Killed {};

class Simulation final : public Scheduler {
 public:
  /// One life of a worker: what its process does. It is over when this returns or throws.
  using Life = std::function<void(Transport& transport)>;

  Simulation(int workers, std::uint64_t seed, const NetworkOptions& options = {});
  ~Simulation() override;

  // Before run(), and from lives.
  /// A worker begins its next life.
  void begin(int rank, Time when, Life life);
  /// Nothing happens where the life is over by then.
  void kill(int rank, std::uint64_t generation, Time when);
  /// The life ends in the middle of what it posts, with its so many-th send.
  void kill_at_send(int rank, std::uint64_t generation, int send);
  void freeze(int rank, std::uint64_t generation, Time when, Duration duration);
  void part(const std::set<int>& ranks, Time when, Duration duration);
  /// Called when a life is over, by whatever; within the simulation.
  void when_over(std::function<void(int rank, std::uint64_t generation)> work) {
    when_over_ = std::move(work);
  }

  /// Until all lives are over; false where they are not after `limit`.
  bool run(Duration limit);

  /// Of the life that calls it: it does something else for so long.
  static void sleep(Transport& transport, Duration duration);

  Time now() const override { return now_; }
  Rng& rng() override { return rng_; }
  void do_at(Time when, std::function<void()> work) override;
  void wake(const Process& process) override;
  /// A number that equal runs have in common.
  std::uint64_t digest() const { return digest_; }

 private:
  friend class SimulatedTransport;
  struct Worker;
  struct Event {
    Time when;
    std::uint64_t number = 0;
    std::function<void()> work;
    bool operator<(const Event& other) const {
      return std::tie(other.when, other.number) < std::tie(when, number);
    }
  };

  void start(int rank, const Life& life);
  void live(Worker& worker, const Life& life);
  void go_on(Worker& worker);
  void wait(Worker& worker, Time until, bool sleeps);
  void be_killed(Worker& worker);
  void wake_at(Worker& worker, Time when);
  Worker* living(int rank, std::uint64_t generation);

  Time now_ = Time(std::chrono::hours(1));
  Rng rng_;
  Network network_;
  std::priority_queue<Event> events_;
  std::uint64_t events_so_far_ = 0;
  std::uint64_t digest_ = 0;
  int begun_ = 0;  ///< or to begin
  int over_ = 0;
  std::vector<std::uint64_t> lives_;              ///< by rank, begun so far
  std::vector<std::unique_ptr<Worker>> workers_;  ///< by begin
  std::function<void(int rank, std::uint64_t generation)> when_over_;
};

}  // namespace gossamer::simulation
