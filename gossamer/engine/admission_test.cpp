// Workers that come back: over real sockets and shared memory, all of them in one process.
#include "gossamer/engine/admission.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "gossamer/base/index.h"
#include "gossamer/base/rng.h"
#include "gossamer/engine/engine.h"
#include "gossamer/engine/testing/bowls.h"
#include "gossamer/graph/topology.h"
#include "gossamer/transport/net/net_transport.h"

namespace gossamer {
namespace admission_test {

constexpr int kElements = 30;
constexpr std::int64_t kNever = 1 << 30;
constexpr auto kStep = std::chrono::milliseconds(1);
constexpr double kTimeoutS = 120;  // under a sanitizer, beside builds, answers took 40 s
/// Ten times what is done in the time that a newcomer leaves the others.
constexpr std::int64_t kFarAhead = 1000;

struct Course {
  std::string topology = "ring";
  std::string pattern = "cwa";
  int steps_together = 280;  ///< when all are there for good
  std::vector<int> per_host = {1, 1, 1, 1};
  bool over_streams = false;
  Codec codec = Codec::fp32;
  /// By rank: after how many steps of its own each of its lives ends; the last life goes on.
  std::vector<std::vector<int>> lives;
};

/// A job whose workers are threads, each with a transport of its own.
class Job {
 public:
  explicit Job(Course plan)
      : plan_(std::move(plan)), shape_{plan_.per_host}, endpoints_(at(shape_.workers())) {
    plan_.lives.resize(endpoints_.size());
    for (const auto& lives : plan_.lives) returns_ += static_cast<int>(lives.size());
    std::vector<std::jthread> workers;
    for (int rank = 0; rank < shape_.workers(); ++rank) {
      workers.emplace_back([this, rank] { live(rank); });
    }
  }

  std::vector<std::vector<double>> x;  ///< of all at the end, by rank
  std::vector<double> means;           ///< of element 0, each worker's averaged()
  std::atomic<int> came_back = 0;
  std::vector<std::string> problems;

 private:
  void live(int rank) {
    const auto& lives = plan_.lives[at(rank)];
    int generation = 0;
    int tries = 0;
    for (std::size_t life = 0; life <= lives.size(); ++generation) {
      try {
        work(rank, generation, life == lives.size() ? -1 : lives[life]);
        ++life;
      } catch (const std::exception& error) {
        const std::string text = error.what();
        const bool may_try_again = text.find("too fast") != std::string::npos ||
                                   text.find("comes back as well") != std::string::npos ||
                                   text.find("the same workers") != std::string::npos;
        if (may_try_again && ++tries < 20) continue;
        end_early("worker " + std::to_string(rank) + " in life " + std::to_string(life) + ": " +
                  error.what());
        break;
      }
    }
    ++over_;
    while (over_ < shape_.workers()) std::this_thread::sleep_for(kStep);
  }

  void end_early(const std::string& problem) {
    const std::lock_guard lock(mutex_);
    problems.push_back(problem);
    end_ = 0;
  }

  void begins_at(std::int64_t step) {
    const std::lock_guard lock(mutex_);
    last_start_ = std::max(last_start_.load(), step);
  }

  std::unique_ptr<Transport> connect(int rank, int life) {
    NetOptions options;
    options.rank = rank;
    options.workers = shape_.workers();
    options.token = "open sesame";
    options.generation = static_cast<std::uint64_t>(life);
    options.share_memory = !plan_.over_streams;
    if (plan_.over_streams) options.address = "127.0.0.1";
    options.share = [this, rank, life](const std::string& own) {
      {
        const std::lock_guard lock(mutex_);
        endpoints_[at(rank)] = own;
        if (life == 0) ++here_;
      }
      while (here_ < shape_.workers()) std::this_thread::sleep_for(kStep);
      const std::lock_guard lock(mutex_);
      return endpoints_;
    };
    return make_net_transport(options);
  }

  bool learns() const { return plan_.pattern != "cwa"; }

  /// One life; `ends_after` so many steps, −1: it goes on to the end.
  void work(int rank, int life, int ends_after) {
    const auto transport = connect(rank, life);
    std::vector<double> mine(kElements);
    std::vector<double> g(kElements, 0.);
    for (int i = 0; i < kElements; ++i) mine[at(i)] = std::sin(7. * rank + i);
    std::optional<Arrival> arrival;
    if (life > 0) {
      std::vector<int> others;
      for (int k = 1; k < shape_.workers(); ++k) others.push_back((rank + k) % shape_.workers());
      arrival.emplace(*transport, others, kTimeoutS, nullptr);
      const std::string state = arrival->take_state();
      std::memcpy(mine.data(), state.data(), state.size());
    }
    Engine engine({.schedule = make_topology(plan_.topology, {.shape = shape_}),
                   .pattern = plan_.pattern,
                   .optimizer = "sgd",
                   .groups = {{.lr = learns() ? 0.2 : 0.}},
                   .codec = plan_.codec,
                   .lost = Lost::go_on,
                   .timeout_s = kTimeoutS},
                  *transport,
                  {{DType::f64, mine.data(), g.data(), 20, {{0, 20, 0}}},
                   {DType::f64, mine.data() + 20, g.data() + 20, 10, {{0, 10, 0}}}});
    if (arrival) {
      engine.start_back(*arrival);
      begins_at(engine.steps_done());
      ++came_back;
      if (engine.steps_done() > latest_ + kFarAhead) end_early("begins far ahead of the others");
    } else {
      engine.start_at(0);
    }
    const std::int64_t first = engine.steps_done();
    for (std::int64_t step = first; step < end_; ++step) {
      if (came_back == returns_) {
        std::int64_t never = kNever;
        end_.compare_exchange_strong(never,
                                     std::max(step, last_start_.load()) + plan_.steps_together);
      }
      if (ends_after >= 0 && step - first == ends_after) return;
      if (learns()) bowls::set_gradient(rank, mine, g);
      engine.step();
      latest_ = engine.steps_done();
      for (const int guest : engine.admission()->waiting_for_state()) {
        const auto* bytes = reinterpret_cast<const char*>(mine.data());
        engine.admission()->give_state(guest, engine.steps_done(),
                                       std::string(bytes, kElements * sizeof(double)));
      }
      if (step % 25 == 24) {
        double value = mine[0];
        engine.quiesce();
        engine.collectives().mean({&value, 1});
      }
      std::this_thread::sleep_for(kStep);
    }
    engine.quiesce();
    double value = mine[0];
    engine.collectives().mean({&value, 1});
    const std::lock_guard lock(mutex_);
    x.push_back(mine);
    means.push_back(value);
  }

  Course plan_;
  const HostShape shape_;
  std::vector<std::string> endpoints_;
  int returns_ = 0;                         ///< until all are there for good
  std::atomic<std::int64_t> end_ = kNever;  ///< steps of the run, once they are
  std::atomic<std::int64_t> last_start_ = 0;
  std::atomic<std::int64_t> latest_ = 0;  ///< step that somebody has done
  std::atomic<int> here_ = 0;
  std::atomic<int> over_ = 0;
  std::mutex mutex_;
};

void expect_whole(const Job& job, int workers) {
  for (const std::string& problem : job.problems) ADD_FAILURE() << problem;
  ASSERT_EQ(std::ssize(job.means), workers);
  for (const double mean : job.means) EXPECT_EQ(mean, job.means[0]);
  double sum = 0;
  for (const auto& each : job.x) sum += each[0];
  EXPECT_NEAR(job.means[0], sum / workers, 1e-12);
}

/// They have mixed since all were there again. See Note [Rounds formed anew].
void expect_mixed(const Job& job) {
  for (int i = 0; i < kElements; ++i) {
    for (const auto& x : job.x) ASSERT_NEAR(x[at(i)], job.x[0][at(i)], 1e-9);
  }
}

TEST(Pace, TheMostStepsOfAShortTimeAreRememberedForSomeSeconds) {
  using std::chrono::milliseconds;
  Clock::time_point now{};
  std::int64_t steps = 0;
  Pace pace;
  const auto step = [&](int times, milliseconds each) {
    for (int k = 0; k < times; ++k) pace.look(++steps, now += each);
  };
  step(3, milliseconds(1000));
  EXPECT_EQ(pace.most(), 0) << "none of them was done in the time";
  step(100, milliseconds(5));
  EXPECT_NEAR(static_cast<double>(pace.most()), Pace::kSpan / milliseconds(5), 1.);
  const std::int64_t most = pace.most();
  step(20, milliseconds(50));
  EXPECT_GE(pace.most(), most / 2) << "a second later the others may be as quick again";
  step(400, milliseconds(50));
  EXPECT_LE(pace.most(), 2);
}

TEST(Admission, OneThatWasLostTakesPartAgain) {
  const Job job({.lives = {{}, {}, {20}}});
  expect_whole(job, 4);
  expect_mixed(job);
  EXPECT_EQ(job.came_back, 1);
}

TEST(Admission, TheFirstWorkerMayComeBackOverStreamsWithCodes) {
  const Job job(
      {.per_host = {1, 1, 1}, .over_streams = true, .codec = Codec::int8, .lives = {{15, 10}}});
  expect_whole(job, 3);
  EXPECT_EQ(job.came_back, 2);
}

TEST(Admission, GroupsAreWholeAgain) {
  const Job job({.topology = "alternating_exponential_ring",
                 .per_host = {2, 2, 2},
                 .lives = {{}, {10}, {}, {}, {30}}});
  expect_whole(job, 6);
  expect_mixed(job);
  EXPECT_EQ(job.came_back, 2);
}

/// See Note [Sums that begin anew].
TEST(Admission, PatternsThatKeepSumsComeToTheOptimumOfAllThatAreThere) {
  for (const char* pattern : {"extra", "gradient_tracking", "gradient_tracking_atc"}) {
    SCOPED_TRACE(pattern);
    const Job job({.pattern = pattern,
                   .steps_together = 700,
                   .per_host = {1, 1, 1, 1, 1},
                   .lives = {{}, {40}, {20, 30}, {}, {60, 5}}});
    for (const std::string& problem : job.problems) ADD_FAILURE() << problem;
    EXPECT_EQ(job.came_back, 5);
    ASSERT_EQ(std::ssize(job.x), 5);
    for (int i = 0; i < kElements; ++i) {
      const double right = bowls::optimum({0, 1, 2, 3, 4}, i);
      for (const auto& x : job.x) ASSERT_NEAR(x[at(i)], right, 1e-10);
    }
  }
}

TEST(Admission, WhoeverEndsWheneverAllAreThereInTheEnd) {
  Rng rng(3);
  for (int trial = 0; trial < 12; ++trial) {
    Course plan{.topology = trial % 2 == 0 ? "ring" : "alternating_exponential_ring",
                .per_host = trial % 2 == 0 ? std::vector{1, 1, 1, 1} : std::vector{2, 2},
                .over_streams = trial % 5 == 4,
                .lives = {}};
    plan.lives.resize(4);
    for (int rank = 1; rank < 4; ++rank) {
      const auto lives = rng.below(4);
      for (std::uint64_t k = 0; k < lives; ++k) {
        plan.lives[at(rank)].push_back(static_cast<int>(rng.below(33)));
      }
    }
    SCOPED_TRACE("trial " + std::to_string(trial));
    const Job job(plan);
    expect_whole(job, 4);
    expect_mixed(job);
    if (::testing::Test::HasFailure()) return;
  }
}

}  // namespace admission_test
}  // namespace gossamer
