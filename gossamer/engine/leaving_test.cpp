// Workers that leave as soon as they have done their last step: over shared memory, all of them in
// one process.
#include <gtest/gtest.h>

#include <atomic>
#include <mutex>
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
namespace leaving_test {

constexpr int kWorkers = 6;
constexpr int kElements = 600;
constexpr int kSteps = 4;

/// Of workers that begin together and leave when they are done; some take longer for a step.
class Job {
 public:
  Job(std::string topology, std::string pattern, std::uint64_t seed)
      : topology_(std::move(topology)), pattern_(std::move(pattern)), seed_(seed) {
    std::vector<std::jthread> workers;
    for (int rank = 0; rank < kWorkers; ++rank) {
      workers.emplace_back([this, rank] {
        try {
          work(rank);
        } catch (const std::exception& error) {
          const std::lock_guard lock(mutex_);
          problems.push_back(std::to_string(rank) + ": " + error.what());
        }
      });
    }
  }

  std::vector<std::string> problems;

 private:
  std::unique_ptr<Transport> connect(int rank) {
    NetOptions options;
    options.rank = rank;
    options.workers = kWorkers;
    options.token = "open sesame";
    options.share = [this, rank](const std::string& own) {
      {
        const std::lock_guard lock(mutex_);
        endpoints_[at(rank)] = own;
        ++here_;
      }
      while (here_ < kWorkers) std::this_thread::yield();
      const std::lock_guard lock(mutex_);
      return endpoints_;
    };
    return make_net_transport(options);
  }

  void work(int rank) {
    Rng rng(seed_, static_cast<std::uint64_t>(rank));
    const bool is_slow = rng.below(2) == 0;
    const auto transport = connect(rank);
    std::vector<double> x(kElements, rank);
    std::vector<double> g(kElements);
    EngineOptions options{.schedule = make_topology(topology_, {.shape = {{kWorkers}}}),
                          .pattern = pattern_,
                          .optimizer = "sgd",
                          .groups = {{.lr = 0.1}},
                          .timeout_s = 60};
    Engine engine(options, *transport,
                  {{DType::f64, x.data(), g.data(), kElements, {{0, kElements, 0}}}});
    engine.start_at(0);
    for (int step = 0; step < kSteps; ++step) {
      bowls::set_gradient(rank, x, g);
      if (is_slow) std::this_thread::sleep_for(std::chrono::microseconds(rng.below(3000)));
      engine.step();
    }
    engine.wait_until_given(deadline_after(options.timeout_s));
  }

  const std::string topology_;
  const std::string pattern_;
  const std::uint64_t seed_;
  std::mutex mutex_;
  std::vector<std::string> endpoints_ = std::vector<std::string>(kWorkers);
  std::atomic<int> here_ = 0;
};

/// On directed graphs a worker may be steps ahead of whom it sends to.
TEST(Leaving, TheOthersHaveWhatTheLastStepsSent) {
  for (const char* topology : {"one_peer_exponential", "directed_ring", "ring", "complete"}) {
    for (const char* pattern : {"atc", "cwa", "gradient_tracking", "allreduce"}) {
      for (std::uint64_t seed = 0; seed < 8; ++seed) {
        const Job job(topology, pattern, seed);
        ASSERT_TRUE(job.problems.empty()) << pattern << " on " << topology << ", seed " << seed
                                          << ", worker " << job.problems.front();
      }
    }
  }
}

}  // namespace leaving_test
}  // namespace gossamer
