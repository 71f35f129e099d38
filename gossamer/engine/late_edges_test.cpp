#include "gossamer/engine/late_edges.h"

#include <gtest/gtest.h>

#include <thread>

#include "gossamer/base/errors.h"
#include "gossamer/engine/testing/engine_case.h"
#include "gossamer/graph/topology.h"

namespace gossamer {
namespace late_edges_test {

using namespace engine_case;  // NOLINT: all of it is about this test

constexpr std::int64_t kCount = 5;
using Values = std::vector<float>;

/// Two workers that average with each other in every round.
struct Pair {
  std::vector<std::unique_ptr<Transport>> transports =
      make_threads_transports(free_links(even_hosts(2, 1)));
  Round round = complete_round(2);
  Plan plan0 = compile(round, even_hosts(2, 1), 0, kCount, {.separate_neighbours = true});
  Plan plan1 = compile(round, even_hosts(2, 1), 1, kCount, {.separate_neighbours = true});
  const Values zeros = Values(kCount);
  LateEdges edges0;
  LateEdges edges1;
  std::int64_t skipped = 0;

  explicit Pair(std::int64_t staleness)
      : edges0(*transports[0], {.count = kCount, .staleness = staleness},
               std::array{&std::as_const(plan0)}),
        edges1(*transports[1], {.count = kCount, .staleness = staleness},
               std::array{&std::as_const(plan1)}) {
    plan0.phases[0].sends.clear();  // worker 0 only listens
  }

  void send_from_1(float value) {
    const Values x(kCount, value);
    edges1.launch(plan1, 0, std::array{PayloadRef{.data = x.data()}});
    edges0.collect();
  }
  Arrived arrived(std::int64_t step) {
    edges0.launch(plan0, step, std::array{PayloadRef{.data = zeros.data()}});
    return edges0.arrived();
  }
  /// What worker 0 mixes in its step; its own parameters are zero.
  std::pair<double, float> mix(std::int64_t step) {
    const Arrived arrived = this->arrived(step);
    skipped += arrived.skipped;
    float sum = 0;
    for (const Term& term : arrived.pieces[0].terms) {
      sum += static_cast<float>(term.weight) *
             reinterpret_cast<const float*>(arrived.at(0, term.slice))[kCount - 1];
    }
    return {arrived.pieces[0].self_weight, sum};
  }
};

TEST(LateEdges, NeighbourThatHasSentNothingGivesItsWeightBack) {
  Pair pair(3);
  EXPECT_EQ(pair.mix(0), std::pair(1.0, 0.0F));
  EXPECT_EQ(pair.skipped, 1);
}

TEST(LateEdges, PayloadIsUsedUntilItIsTooOld) {
  Pair pair(2);
  pair.send_from_1(4);
  for (std::int64_t step : {10, 11, 12}) EXPECT_EQ(pair.mix(step), std::pair(0.5, 2.0F)) << step;
  EXPECT_EQ(pair.mix(13), std::pair(1.0, 0.0F));
  pair.send_from_1(6);
  EXPECT_EQ(pair.mix(14), std::pair(0.5, 3.0F));
  EXPECT_EQ(pair.skipped, 1);
}

TEST(LateEdges, NewestPayloadIsTheOneThatIsUsed) {
  Pair pair(0);
  for (float value : {2.0F, 4.0F, 6.0F, 8.0F}) pair.send_from_1(value);
  EXPECT_EQ(pair.mix(0), std::pair(0.5, 4.0F));
}

TEST(LateEdges, WhatIsReadStaysWhileNewerPayloadsCome) {
  Pair pair(0);
  pair.send_from_1(2);
  const Arrived arrived = pair.arrived(0);
  const auto* read =
      reinterpret_cast<const float*>(arrived.at(0, arrived.pieces[0].terms[0].slice));
  for (float value : {4.0F, 6.0F, 8.0F}) {
    pair.send_from_1(value);
    EXPECT_EQ(*read, 2);
  }
}

TEST(LateEdges, LostNeighbourIsAnErrorOnceItsPayloadsAreUsed) {
  Pair pair(1);
  pair.send_from_1(2);
  pair.transports[1]->close(0);
  EXPECT_EQ(pair.mix(0), std::pair(0.5, 1.0F));
  EXPECT_THROW(pair.mix(1), TransportError);
}

Case skipping_case(const std::string& topology, const HostShape& shape, Codec codec) {
  Case c;
  c.options.schedule = make_topology(topology, {.shape = shape, .seed = 3});
  c.options.optimizer = "sgd";
  c.options.groups = {{.lr = 0.1}};
  c.options.late = Late::skip;
  c.options.codec = codec;
  c.bucket_sizes = {300, 40};
  c.group_of.assign(340, 0);
  c.steps = 30;
  return c;
}

TEST(LateEdges, WorkersThatAgreeGoOnAgreeingWhateverIsSkipped) {
  const Gradient zero = [](int, std::int64_t, const std::vector<double>& x) {
    return std::vector<double>(x.size(), 0.0);
  };
  for (const std::string topology : {"ring", "aer", "complete", "one_peer_exponential"}) {
    for (const HostShape& shape : {even_hosts(4, 2), HostShape{{1, 2, 3}}}) {
      for (const Codec codec : {Codec::fp32, Codec::int8}) {
        for (const bool spares : {false, true}) {
          SCOPED_TRACE(topology + ", " + std::string(name_of(codec)));
          Case c = skipping_case(topology, shape, codec);
          c.spares = spares;
          const Matrix end = engine_run<double>(c, zero);
          const auto first = first_model<double>(c);
          // int8 cannot lose more than what its residuals carry over.
          const double bound = codec == Codec::fp32 ? 1e-12 : 0.1;
          for (const auto& x : end) {
            for (std::size_t k = 0; k < x.size(); ++k) ASSERT_NEAR(x[k], first->x[k], bound);
          }
        }
      }
    }
  }
}

TEST(LateEdges, WorkersFinishWithoutOneThatStepsRarely) {
  for (const bool over_net : {false, true}) {
    const Case c = skipping_case("ring", even_hosts(4, 1), Codec::fp32);
    auto transports =
        over_net ? make_net_team(4, c.net) : make_threads_transports(free_links(c.shape()));
    std::atomic<int> finished = 0;
    std::atomic<std::int64_t> skipped = 0;
    run_workers(std::move(transports), [&](Transport& transport) {
      const int rank = transport.describe().rank;
      const auto model = first_model<float>(c);
      Engine engine(c.options, transport, model->buckets(c));
      engine.start();
      const auto step = [&] { skipped += engine.step().skipped; };
      if (rank == 3) {
        step();
        while (finished < 3) std::this_thread::yield();  // takes no second step before
      } else {
        for (std::int64_t k = 0; k < c.steps; ++k) step();
        ++finished;
      }
      engine.collectives().barrier();
    });
    EXPECT_GT(skipped, 0);
  }
}

TEST(LateEdges, PatternsThatWaitByTheirNatureAreRefused) {
  Case c = skipping_case("ring", even_hosts(2, 1), Codec::fp32);
  c.options.pattern = "atc";
  EXPECT_THROW(engine_run<float>(c, quadratics(1)), std::invalid_argument);
  c.options.pattern = "cwa";
  c.options.schedule = make_topology("random", {.shape = even_hosts(2, 1), .seed = 3});
  EXPECT_THROW(engine_run<float>(c, quadratics(1)), std::invalid_argument);
  c.options.schedule = make_topology("ring", {.shape = even_hosts(2, 1)});
  c.options.staleness = -1;
  EXPECT_THROW(engine_run<float>(c, quadratics(1)), std::invalid_argument);
}

}  // namespace late_edges_test
}  // namespace gossamer
