// What goes wrong around an engine: late and failing workers, gradients, options, averages.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cmath>
#include <limits>
#include <string>
#include <thread>

#include "gossamer/base/errors.h"
#include "gossamer/base/test_errors.h"
#include "gossamer/engine/engine.h"
#include "gossamer/engine/non_finite.h"
#include "gossamer/engine/worker_threads.h"
#include "gossamer/graph/modifiers.h"
#include "gossamer/graph/topology.h"
#include "gossamer/transport/threads.h"

namespace gossamer {
namespace {

/// One worker's tiny model: 40 parameters in two buckets.
struct Tiny {
  std::vector<double> x = std::vector<double>(40, 1.0);
  std::vector<double> g = std::vector<double>(40, 0.1);

  std::vector<Bucket> buckets() {
    return {{DType::f64, x.data(), g.data(), 24, {{0, 24, 0}}},
            {DType::f64, x.data() + 24, g.data() + 24, 16, {{0, 16, 0}}}};
  }
};

EngineOptions options_for(int workers, const std::string& topology = "ring") {
  return {.schedule = make_topology(topology, {.shape = even_hosts(workers, 1)}),
          .optimizer = "sgd",
          .groups = {{.lr = 0.1}}};
}

std::vector<std::unique_ptr<Transport>> transports(int workers) {
  ClusterSpec cluster;
  cluster.hosts.resize(static_cast<std::size_t>(workers));
  return make_threads_transports(cluster);
}

TEST(EngineFailure, WorkerThatStopsCostsItsNeighboursOneTimeout) {
  constexpr double kTimeout_s = 1;
  EngineOptions options = options_for(3);
  options.timeout_s = kTimeout_s;
  std::atomic<int> failed = 0;
  // Nobody leaves before both neighbours have failed: leaving would be noticed sooner.
  const auto stay = [&failed] {
    while (failed < 2) std::this_thread::sleep_for(std::chrono::milliseconds(5));
  };
  run_workers(transports(3), [&](Transport& transport) {
    const int rank = transport.describe().rank;
    Tiny tiny;
    Engine engine(options, transport, tiny.buckets());
    try {
      engine.start();
      if (rank == 2) return stay();  // freezes: alive, but does not step
      for (int step = 0; step < 1000; ++step) engine.step();
      ADD_FAILURE() << "nobody noticed";
    } catch (const TransportError& error) {
      EXPECT_EQ(error.details().rank, rank);
      EXPECT_NE(error.details().peer, rank);
      EXPECT_GE(error.details().elapsed_s, kTimeout_s);
    }
    ++failed;
    stay();
  });
}

TEST(EngineFailure, ErrorOfOneWorkerIsTheOneThatIsReported) {
  const std::string message = message_of([] {
    run_workers(transports(4), [](Transport& transport) {
      Tiny tiny;
      Engine engine(options_for(4), transport, tiny.buckets());
      engine.start();
      for (int step = 0; step < 50; ++step) {
        if (transport.describe().rank == 1 && step == 7) throw std::runtime_error("disk on fire");
        engine.step();
      }
    });
  });
  EXPECT_EQ(message, "disk on fire");
}

TEST(EngineFailure, NonFiniteGradientNamesItsPlaceAndTouchesNothing) {
  for (const char* pattern : {"cwa", "atc", "allreduce"}) {
    for (const UpdateAt update : {UpdateAt::step, UpdateAt::backward}) {
      EngineOptions options = options_for(2);
      options.pattern = pattern;
      options.update = update;
      const std::string message = message_of([&] {
        run_workers(transports(2), [&](Transport& transport) {
          Tiny tiny;
          Engine engine(options, transport, tiny.buckets());
          engine.start();
          engine.step();
          const std::vector<double> before = tiny.x;
          if (transport.describe().rank == 1) {
            tiny.g[30] = std::numeric_limits<double>::quiet_NaN();
          }
          try {
            engine.gradient_ready(1);
            engine.step();
          } catch (const NonFiniteGradient&) {
            EXPECT_EQ(tiny.x, before);
            throw;
          }
        });
      });
      for (const char* part : {"bucket 1, element 6", "worker 1", "step 2", "finite", "lower lr"}) {
        EXPECT_NE(message.find(part), std::string::npos) << pattern << ": " << message;
      }
    }
  }
}

TEST(EngineFailure, GradientsAreNotLookedAtWhereThatIsSwitchedOff) {
  EngineOptions options = options_for(1);
  options.check_gradients = false;
  run_workers(transports(1), [&](Transport& transport) {
    Tiny tiny;
    tiny.g[0] = std::numeric_limits<double>::infinity();
    Engine engine(options, transport, tiny.buckets());
    engine.start();
    EXPECT_NO_THROW(engine.step());
  });
}

/// A gradient may stay finite where the parameters are not.
TEST(EngineFailure, ParametersOfOthersThatAreNotFiniteNameWhoSentThem) {
  for (const char* pattern : {"cwa", "atc"}) {
    for (const Codec codec : kAllCodecs) {
      for (const Late late : {Late::wait, Late::skip}) {
        if (late == Late::skip && pattern == std::string("atc")) continue;
        EngineOptions options = options_for(2);
        options.pattern = pattern;
        options.codec = codec;
        options.late = late;
        const std::string message = message_of([&] {
          run_workers(transports(2), [&](Transport& transport) {
            Tiny tiny;
            Engine engine(options, transport, tiny.buckets());
            engine.start();
            for (int step = 0; step < 20'000; ++step) {  // with skip it may go on without it
              engine.step();
              if (transport.describe().rank != 1) continue;
              tiny.x[30] = std::numeric_limits<double>::quiet_NaN();
            }
          });
        });
        for (const char* part : {"parameters that worker 1 sent", "finite"}) {
          EXPECT_NE(message.find(part), std::string::npos)
              << pattern << " " << name_of(codec) << ": " << message;
        }
      }
    }
  }
}

TEST(EngineOptions, ThatDoNotFitEachOtherAreRefused) {
  const auto refused = [](EngineOptions options, const char* part) {
    auto ends = transports(2);
    Tiny tiny;
    const std::string message =
        message_of([&] { Engine(std::move(options), *ends[0], tiny.buckets()); });
    EXPECT_NE(message.find(part), std::string::npos) << message;
  };
  EngineOptions clipped = options_for(2);
  clipped.clip_norm = 1;
  clipped.update = UpdateAt::backward;
  refused(clipped, "clip_norm");
  EngineOptions adaptive = options_for(2);
  adaptive.schedule = with_adaptive_global_average(adaptive.schedule, 4);
  adaptive.update = UpdateAt::backward;
  refused(adaptive, "loss");
  refused(options_for(3), "2 workers");
  EngineOptions directed = options_for(2);
  directed.schedule = periodic_schedule("directed", even_hosts(2, 1),
                                        {sparse_round(2, {{{0, 0.5}}, {{0, 0.5}, {1, 1.0}}})},
                                        Stochasticity::column);
  refused(directed, "push_sum");
  directed.pattern = "push_sum";
  directed.codec = Codec::bf16;
  refused(directed, "codec");
  directed.schedule.stochasticity = Stochasticity::row;
  refused(directed, "columns sum to 1");
}

TEST(ConsensusAverage, IsTheMeanAndLeavesNoTrace) {
  run_workers(transports(4), [](Transport& transport) {
    const int rank = transport.describe().rank;
    Tiny tiny;
    Engine engine(options_for(4, "star"), transport, tiny.buckets());
    for (std::size_t k = 0; k < tiny.x.size(); ++k) tiny.x[k] = rank + static_cast<double>(k);
    engine.start_at(0);  // each with values of its own
    engine.quiesce();
    const std::vector<double> local = tiny.x;
    const double disagreement = engine.load_average();
    double norm = 0;
    for (std::size_t k = 0; k < tiny.x.size(); ++k) {
      EXPECT_NEAR(tiny.x[k], 1.5 + static_cast<double>(k), 1e-12);
      norm += tiny.x[k] * tiny.x[k];
    }
    const double mean_square = 40 * (2.25 + 0.25 + 0.25 + 2.25) / 4;
    EXPECT_NEAR(disagreement, std::sqrt(mean_square / norm), 1e-12);
    engine.restore_local();
    EXPECT_EQ(tiny.x, local);
  });
}

TEST(AdaptiveAverage, AllWorkersAgreeOnTheLosses) {
  std::vector<std::vector<AgreedLoss>> agreed(3);
  run_workers(transports(3), [&](Transport& transport) {
    const auto rank = static_cast<std::size_t>(transport.describe().rank);
    EngineOptions options = options_for(3);
    options.schedule = with_adaptive_global_average(options.schedule, 2);
    Tiny tiny;
    Engine engine(options, transport, tiny.buckets());
    engine.start();
    for (int step = 0; step < 12; ++step) {
      engine.step(static_cast<double>(rank) + 16.0 / (1 + step));
    }
    engine.collectives().barrier();
    agreed[rank] = engine.agreed_losses();
  });
  ASSERT_GE(agreed[0].size(), 3U);
  EXPECT_EQ(agreed[0][0].step, 0);
  EXPECT_NEAR(agreed[0][0].loss, 17, 1e-12);  // the mean of 16, 17 and 18
  for (const auto& losses : agreed) {
    ASSERT_EQ(losses.size(), agreed[0].size());
    for (std::size_t k = 0; k < losses.size(); ++k) EXPECT_EQ(losses[k].loss, agreed[0][k].loss);
  }
}

}  // namespace
}  // namespace gossamer
