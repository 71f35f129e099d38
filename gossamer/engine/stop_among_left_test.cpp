// Workers that are killed or frozen while all agree on a last step, in simulated time.
#include "gossamer/engine/stop_among_left.h"

#include <gtest/gtest.h>

#include <chrono>
#include <csignal>
#include <cstdint>
#include <exception>
#include <map>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "gossamer/base/errors.h"
#include "gossamer/base/rng.h"
#include "gossamer/engine/stop_agreement.h"
#include "gossamer/engine/testing/simulation.h"

namespace gossamer {
namespace stop_among_left_test {

using simulation::seconds;
using simulation::Simulation;
using simulation::Time;

constexpr std::chrono::minutes kLimit{10};
constexpr std::chrono::seconds kStaysFor{100};  // longer than any message travels

int below(Rng& rng, int limit) { return static_cast<int>(limit * rng.uniform()); }

/// What happens to a job, drawn from a seed.
struct Course {
  explicit Course(std::uint64_t seed) {
    Rng rng(seed, 7);
    workers = 2 + below(rng, 8);
    latency_s = rng.uniform() < 0.3 ? 0.0002 : 0.05 * rng.uniform();
    stays = rng.uniform() < 0.5;
    told[below(rng, workers)] = 0.2 + 0.1 * rng.uniform();
    while (rng.uniform() < 0.3) told[below(rng, workers)] = 0.2 + 0.1 * rng.uniform();
    while (rng.uniform() < 0.7 && std::ssize(killed_at_send) + 1 < workers) {
      killed_at_send[below(rng, workers)] = 1 + below(rng, 4 * workers);
    }
    int lives = 0;  // where nobody hears of those that are killed
    while (killed_at_send.contains(lives)) ++lives;
    told.try_emplace(lives, 0.5);
  }

  int workers = 0;
  double latency_s = 0;
  bool stays = false;          ///< the process lives on, when it has left the agreement
  std::map<int, double> told;  ///< rank: after so many seconds
  std::map<int, int> killed_at_send;
  std::map<int, double> frozen;  ///< rank: after so many seconds, for 20
};

/// One job: each worker does steps of its own, at its own pace.
class Job {
 public:
  Job(const Course& course, std::uint64_t seed)
      : course_(course), simulation_(course.workers, seed, {.latency = seconds(course.latency_s)}) {
    begin_ = simulation_.now();
    for (int rank = 0; rank < course.workers; ++rank) {
      simulation_.begin(rank, begin_,
                        [this, rank](Transport& transport) { live(rank, transport); });
    }
    has_ended = simulation_.run(kLimit);
  }

  bool has_ended = false;
  std::map<int, std::int64_t> ends;   ///< by rank: after which step
  std::map<int, double> ended_s;      ///< likewise, when it had left the agreement
  std::map<int, std::string> errors;  ///< likewise

 private:
  double now_s() const { return std::chrono::duration<double>(simulation_.now() - begin_).count(); }

  void live(int rank, Transport& transport) {
    if (course_.killed_at_send.contains(rank)) {
      simulation_.kill_at_send(rank, 0, course_.killed_at_send.at(rank));
    }
    if (course_.frozen.contains(rank)) {
      simulation_.freeze(rank, 0, begin_ + seconds(course_.frozen.at(rank)), seconds(20));
    }
    try {
      ends[rank] = last_step(rank, transport);
      ended_s[rank] = now_s();
    } catch (const TransportError& error) {
      errors[rank] = error.what();
    }
    if (course_.stays) Simulation::sleep(transport, kStaysFor);
  }

  std::int64_t last_step(int rank, Transport& transport) {
    // The bid of one that dies is the largest as a rule: what others do depends on who hears it.
    const double pace_s =
        course_.killed_at_send.contains(rank) ? 0.004 : 0.005 + 0.01 * simulation_.rng().uniform();
    StopAgreement agreement(transport, 0, Lost::go_on);
    const auto told = [&] {
      const auto at = course_.told.find(rank);
      return at != course_.told.end() && now_s() > at->second ? SIGTERM : 0;
    };
    std::int64_t done = 0;
    for (; !agreement.is_last(done, told()); ++done) {
      for (int k = 0; k < 3; ++k) {  // what another thread does beside a step
        Simulation::sleep(transport, seconds(pace_s));
        agreement.look(told());
      }
    }
    return done;
  }

  const Course course_;
  Simulation simulation_;
  Time begin_;
};

/// Those that live end after the same step, soon; how many do.
std::size_t expect_one_end(const Course& course, const Job& job) {
  EXPECT_TRUE(job.has_ended) << "some wait for ever";
  std::set<std::int64_t> ends;
  for (const auto& [rank, end] : job.ends) {
    if (!course.frozen.contains(rank)) ends.insert(end);
  }
  EXPECT_LE(ends.size(), 1U);
  for (const auto& [rank, error] : job.errors) {
    EXPECT_TRUE(course.frozen.contains(rank)) << rank << ": " << error;
  }
  return job.ends.size();
}

void play(std::uint64_t seed, const Course& course) {
  SCOPED_TRACE("seed " + std::to_string(seed));
  const Job job(course, seed);
  const std::size_t ended = expect_one_end(course, job);
  const std::size_t lost = course.killed_at_send.size() + course.frozen.size();
  EXPECT_GE(ended + lost, static_cast<std::size_t>(course.workers));
  for (const auto& [rank, ended_s] : job.ended_s) EXPECT_LT(ended_s, kStaysFor.count()) << rank;
}

TEST(StopAmongLeft, WhoeverDiesWheneverTheOthersStopAfterOneStep) {
  std::vector<std::uint64_t> seeds{966};  // one hears of a death first, and of what it misses last
  for (std::uint64_t seed = 0; seed < 150; ++seed) seeds.push_back(seed);
  for (const std::uint64_t seed : seeds) {
    play(seed, Course(seed));
    if (testing::Test::HasFailure()) return;
  }
}

TEST(StopAmongLeft, WhoStandsStillKeepsNobodyWaiting) {
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    Course course(seed);
    if (course.workers < 4) continue;
    Rng rng(seed, 8);
    const int rank = below(rng, course.workers);
    if (course.told.contains(rank) || course.killed_at_send.contains(rank)) continue;
    course.frozen[rank] = 0.1 + 0.4 * rng.uniform();
    play(seed, course);
    if (testing::Test::HasFailure()) return;
  }
}

/// Of two workers, where the other one has come back and waits to be let in.
class NotLetIn final : public Transport {
 public:
  using Transport::send;
  Request send(int, Tag, std::span<const std::byte>, Deadline, Owner) override { return 1; }
  Request receive(int, Tag, std::span<std::byte>, Deadline) override {
    ++receives;
    return 1;
  }
  Status poll(Request) override {
    const TransportError error({.rank = 0, .peer = 1, .fault = Fault::lost});
    return {Status::State::failed, {}, std::make_exception_ptr(error)};
  }
  void release(Request) override {}
  void progress(Deadline) override {}
  void close(int) override {}
  TransportInfo describe() const override { return {.workers = 2}; }
  std::uint64_t generation(int) const override { return 1; }

  int receives = 0;
};

/// Each request wakes whoever waits: were they endless, nobody would look at what comes.
TEST(StopAmongLeft, AsksNowAndThenWhoIsNotLetInYet) {
  NotLetIn transport;
  StopAmongLeft talk(transport);
  for (int i = 0; i < 1000; ++i) talk.hear();
  EXPECT_GE(transport.receives, 1);
  EXPECT_LT(transport.receives, 500);
}

}  // namespace stop_among_left_test
}  // namespace gossamer
