#include "gossamer/engine/peers.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <mutex>
#include <set>
#include <stdexcept>

#include "gossamer/engine/agreement.h"
#include "gossamer/engine/engine.h"
#include "gossamer/engine/testing/engine_case.h"
#include "gossamer/engine/worker_threads.h"
#include "gossamer/graph/topology.h"
#include "gossamer/transport/threads.h"

namespace gossamer {
namespace {

using engine_case::free_links;

/// Whom each worker really talked to in a run that uses everything.
std::map<int, std::set<int>> talked_to(const EngineOptions& options) {
  std::map<int, std::set<int>> talked;
  std::mutex mutex;
  const HostShape& shape = options.schedule.shape;
  run_workers(make_threads_transports(free_links(shape)), [&](Transport& transport) {
    std::vector<double> x(700, 1.0);
    std::vector<double> g(700, 0.1);
    Engine engine(options, transport,
                  {{DType::f64, x.data(), g.data(), 690, {{0, 690, 0}}},
                   {DType::f64, x.data() + 690, g.data() + 690, 10, {{0, 10, 0}}}});
    engine.start();
    for (int step = 0; step < 2 * std::max(1, options.schedule.period) + 1; ++step) engine.step();
    engine.load_average();
    engine.restore_local();
    engine.collectives().barrier();
    const TransportInfo info = transport.describe();
    const std::lock_guard lock(mutex);
    for (const EdgeBytes& edge : info.edges) talked[info.rank].insert(edge.peer);
  });
  return talked;
}

TEST(Peers, AreSymmetricAndNobodyTalksToAnyoneElse) {
  for (const HostShape& shape : {even_hosts(3, 2), even_hosts(8, 1), HostShape{{1, 3, 2}}}) {
    for (const Topology& topology : topologies()) {
      for (const char* pattern : {"cwa", "allreduce"}) {
        EngineOptions options{.pattern = pattern, .optimizer = "sgd"};
        try {
          options.schedule = topology.make({.shape = shape});
        } catch (const std::invalid_argument&) {  // not every topology serves every size
          continue;
        }
        const bool follows_none = std::string(pattern) == "allreduce";
        const bool is_directed = topology.stochasticity != Stochasticity::doubly;
        if (is_directed && !follows_none) options.pattern = "push_sum";
        SCOPED_TRACE(std::string(topology.name) + " " + options.pattern);
        const auto talked = talked_to(options);
        for (int rank = 0; rank < shape.workers(); ++rank) {
          const std::vector<int> peers = peers_of(options, rank);
          for (const int peer : peers) {
            EXPECT_TRUE(std::ranges::binary_search(peers_of(options, peer), rank));
          }
          for (const int peer : talked.at(rank)) {
            EXPECT_TRUE(std::ranges::binary_search(peers, peer)) << rank << " to " << peer;
          }
        }
      }
    }
  }
}

TEST(Peers, AreFewWhereHostsAreMany) {
  EngineOptions options{.schedule = make_topology("ring", {.shape = even_hosts(16, 4)})};
  EXPECT_LT(peers_of(options, 5).size(), 25U);
}

TEST(Peers, NeighboursAreThoseOfTheRounds) {
  const EngineOptions options{.schedule = make_topology("ring", {.shape = HostShape{{8}}})};
  EXPECT_EQ(neighbours_of(options, 2), (std::vector<int>{1, 3}));
  EXPECT_GT(peers_of(options, 2).size(), 2U);
}

TEST(Agreement, NamesTheFirstDifferenceWhereItIsAndTheRanksElsewhere) {
  std::map<int, std::string> messages;
  std::mutex mutex;
  run_workers(make_threads_transports(free_links(even_hosts(3, 1))), [&](Transport& transport) {
    const int rank = transport.describe().rank;
    ExchangeRunner runner(transport, 60);
    Collectives collectives(runner, {even_hosts(3, 1), rank});
    require_same(collectives, "test", "one\ntwo\n", "do the same");
    const std::string own = rank == 2 ? "one\nzwei\n" : "one\ntwo\nthree\n";
    try {
      require_same(collectives, "test", own, "do the same");
    } catch (const std::invalid_argument& error) {
      const std::lock_guard lock(mutex);
      messages[rank] = error.what();
    }
  });
  ASSERT_EQ(messages.size(), 3U);
  for (const char* part : {"two", "zwei on worker 2", "do the same"}) {
    EXPECT_NE(messages[2].find(part), std::string::npos) << messages[2];
  }
  EXPECT_NE(messages[0].find("worker 2"), std::string::npos) << messages[0];
  EXPECT_EQ(messages[0], messages[1]);
}

}  // namespace
}  // namespace gossamer
