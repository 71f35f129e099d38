#include "gossamer/graph/topology.h"

#include <gtest/gtest.h>

#include <Eigen/Core>
#include <algorithm>
#include <bit>
#include <cmath>
#include <set>
#include <stdexcept>
#include <string>

#include "gossamer/graph/algebra.h"
#include "gossamer/graph/dense.h"
#include "gossamer/graph/push_sum.h"
#include "gossamer/graph/spectra.h"

namespace gossamer {
namespace {

bool serves(const Topology& topology, int workers) {
  return topology.name != "hypercube" || std::has_single_bit(static_cast<unsigned>(workers));
}

/// One host, n hosts, halves, and hosts with 1, 2, 3, … workers as long as they last.
std::vector<HostShape> shapes_of(int n) {
  std::vector<HostShape> shapes{even_hosts(1, n), even_hosts(n, 1)};
  if (n % 2 == 0) shapes.push_back(even_hosts(n / 2, 2));
  if (n % 3 == 0) shapes.push_back(even_hosts(3, n / 3));
  HostShape growing;
  int left = n;
  for (int workers = 1; left > 0; ++workers) {
    growing.workers_per_host.push_back(std::min(workers, left));
    left -= growing.workers_per_host.back();
  }
  shapes.push_back(growing);
  return shapes;
}

void expect_well_formed(const Round& round, int n, Stochasticity declared = Stochasticity::doubly) {
  ASSERT_EQ(round.workers, n);
  check_stochastic(round, declared);
  for (int i = 0; i < n; ++i) {
    const std::vector<Entry> row = row_of(round, i);
    bool self = false;
    for (std::size_t k = 0; k < row.size(); ++k) {
      self |= row[k].worker == i;
      ASSERT_GE(row[k].weight, 0);
      ASSERT_TRUE(k == 0 || row[k - 1].worker < row[k].worker);
    }
    ASSERT_TRUE(self) << "row " << i;
  }
}

/// Of push-sum, one of the same rounds made row stochastic.
double contraction_of(const Schedule& schedule) {
  if (schedule.stochasticity == Stochasticity::doubly) return period_contraction(schedule);
  const Schedule rows = push_sum_rounds(schedule);
  Eigen::MatrixXd left = dense_matrix(round_at(rows, 0));
  for (int t = 1; t < 12 * schedule.shape.workers(); ++t) {
    left = dense_matrix(round_at(rows, t)) * left;
  }
  return (left.rowwise() - left.colwise().mean()).cwiseAbs().maxCoeff();
}

TEST(EveryTopology, IsAsStochasticAsItSaysAndContractsForEverySizeAndShape) {
  for (const Topology& topology : topologies()) {
    for (int n = 1; n <= 64; ++n) {
      if (!serves(topology, n)) continue;
      for (const HostShape& shape : shapes_of(n)) {
        SCOPED_TRACE(std::string(topology.name) + " n=" + std::to_string(n) +
                     " hosts=" + std::to_string(shape.hosts()));
        const Schedule schedule = make_topology(topology.name, {.shape = shape, .seed = 3});
        EXPECT_EQ(schedule.name, topology.name);
        EXPECT_EQ(schedule.stochasticity, topology.stochasticity);
        const int rounds = observed_rounds(schedule);
        for (int t = 0; t < rounds; ++t) {
          expect_well_formed(round_at(schedule, t), n, topology.stochasticity);
        }
        EXPECT_TRUE(n > 24 || contraction_of(schedule) < 1 - 1e-4);
      }
    }
  }
}

TEST(EveryTopology, IsTheIdentityForOneWorker) {
  for (const Topology& topology : topologies()) {
    const Schedule schedule = make_topology(topology.name, {.shape = even_hosts(1, 1)});
    EXPECT_EQ(row_of(round_at(schedule, 0), 0), (std::vector<Entry>{{0, 1.0}})) << topology.name;
  }
}

TEST(EveryTopology, RepeatsAfterItsPeriod) {
  for (const Topology& topology : topologies()) {
    const Schedule schedule = make_topology(topology.name, {.shape = even_hosts(4, 4)});
    if (schedule.period == 0) continue;
    for (int t = 0; t < schedule.period; ++t) {
      EXPECT_EQ(round_at(schedule, t), round_at(schedule, t + 5LL * schedule.period));
    }
  }
}

TEST(FindTopology, KnowsAliasesAndNamesTheNearest) {
  EXPECT_EQ(find_topology("aer").name, "alternating_exponential_ring");
  try {
    find_topology("rign");
    FAIL();
  } catch (const std::invalid_argument& error) {
    const std::string message = error.what();
    EXPECT_EQ(message.find("[topology] unknown topology, got 'rign'; did you mean 'ring'? valid: "),
              0u);
    EXPECT_NE(message.find("one_peer_exponential"), std::string::npos);
  }
}

TEST(MakeTopology, RefusesHostsWithoutWorkers) {
  EXPECT_THROW(make_topology("ring", {}), std::invalid_argument);
  EXPECT_THROW(make_topology("ring", {.shape = {{2, 0}}}), std::invalid_argument);
}

TEST(Ring, HasThirdsFromThreeWorkersOnAndHalvesForTwo) {
  const auto ring = [](int n) {
    return round_at(make_topology("ring", {.shape = even_hosts(1, n)}), 0);
  };
  EXPECT_EQ(row_of(ring(2), 0), (std::vector<Entry>{{0, 0.5}, {1, 0.5}}));
  EXPECT_EQ(row_of(ring(5), 0), (std::vector<Entry>{{0, 1. / 3}, {1, 1. / 3}, {4, 1. / 3}}));
}

TEST(OnePeerRing, UsesEveryEdgeOfTheRingEquallyOften) {
  for (int n = 3; n <= 21; ++n) {
    const Schedule schedule = make_topology("one_peer_ring", {.shape = even_hosts(n, 1)});
    const int expected_period = n % 2 == 0 ? 2 : n;
    EXPECT_EQ(schedule.period, expected_period);
    std::vector<int> uses(static_cast<std::size_t>(n), 0);
    for (int t = 0; t < schedule.period; ++t) {
      int idle = 0;
      for (const auto& group : round_at(schedule, t).groups) {
        if (group.size() == 1) {
          ++idle;
          continue;
        }
        ASSERT_EQ(group.size(), 2u);
        const bool wraps = group[0] == 0 && group[1] == n - 1;
        ASSERT_TRUE(wraps || group[1] == group[0] + 1);
        ++uses[static_cast<std::size_t>(wraps ? n - 1 : group[0])];
      }
      EXPECT_EQ(idle, n % 2);
    }
    EXPECT_EQ(std::set<int>(uses.begin(), uses.end()).size(), 1u) << n;
  }
}

TEST(DirectedRing, HearsFromTheOneBeforeAndContractsByTheCosineOfPiOverN) {
  for (int n = 3; n <= 40; ++n) {
    const Schedule schedule = make_topology("directed_ring", {.shape = even_hosts(1, n)});
    const Eigen::MatrixXd w = dense_matrix(round_at(schedule, 0));
    for (int i = 0; i < n; ++i) {
      EXPECT_EQ(w(i, i), 0.5);
      EXPECT_EQ(w(i, (i + n - 1) % n), 0.5);
    }
    EXPECT_NEAR(period_contraction(schedule), std::cos(std::acos(-1.0) / n), 1e-9) << n;
  }
}

TEST(RandomFixed, IsTheFirstConnectedGraphOfRandom) {
  int at_step_0 = 0;
  for (std::uint64_t seed = 0; seed < 8; ++seed) {
    const TopologyArgs args{.shape = even_hosts(8, 1), .seed = seed};
    const Schedule random = make_topology("random", args);
    const Round fixed = round_at(make_topology("random_fixed", args), 5);
    at_step_0 += fixed == round_at(random, 0);
    std::int64_t t = 0;
    while (fixed != round_at(random, t) && t < 20) ++t;
    ASSERT_LT(t, 20) << seed;
  }
  EXPECT_GE(at_step_0, 6);
}

TEST(Random, IsAFunctionOfSeedAndStepAlone) {
  const auto make = [](std::uint64_t seed) {
    return make_topology("random", {.shape = even_hosts(12, 1), .seed = seed});
  };
  EXPECT_EQ(make(7).period, 0);
  EXPECT_EQ(round_at(make(7), 5), round_at(make(7), 5));
  EXPECT_NE(round_at(make(7), 5), round_at(make(7), 6));
  EXPECT_NE(round_at(make(7), 5), round_at(make(8), 5));
}

TEST(Random, HasAboutHalfOfAllEdges) {
  const Schedule schedule = make_topology("random", {.shape = even_hosts(40, 1)});
  std::int64_t edges = 0;
  for (int t = 0; t < 50; ++t) edges += (nonzeros(round_at(schedule, t)) - 40) / 2;
  // 39000 coins: the standard deviation is 99.
  EXPECT_NEAR(static_cast<double>(edges), 50 * 780 / 2., 500);
}

TEST(RandomDirected, EverybodySendsToDegreeOthersAndKeepsAnEqualShare) {
  for (const int degree : {1, 2, 5, 30}) {
    const Schedule schedule =
        make_topology("random_directed", {.shape = even_hosts(12, 1), .seed = 4, .degree = degree});
    EXPECT_EQ(schedule.period, 0);
    EXPECT_NE(degree < 11, round_at(schedule, 0) == round_at(schedule, 1));
    const int receivers = std::min(degree, 11);
    for (int t = 0; t < 30; ++t) {
      std::vector<int> sent(12, -1);  // to itself
      for (const auto& row : round_at(schedule, t).rows) {
        for (const Entry& entry : row) {
          ++sent[static_cast<std::size_t>(entry.worker)];
          EXPECT_EQ(entry.weight, 1.0 / (1 + receivers));
        }
      }
      for (const int count : sent) EXPECT_EQ(count, receivers);
    }
  }
  EXPECT_THROW(make_topology("random_directed", {.shape = even_hosts(2, 1), .degree = 0}),
               std::invalid_argument);
}

TEST(RandomDirected, DrawsEveryReceiverEquallyOften) {
  const Schedule schedule =
      make_topology("random_directed", {.shape = even_hosts(6, 1), .seed = 1, .degree = 2});
  std::vector<int> heard(36, 0);
  for (int t = 0; t < 3000; ++t) {
    const Round round = round_at(schedule, t);
    for (std::size_t i = 0; i < 6; ++i) {
      for (const Entry& e : round.rows[i]) ++heard[6 * i + static_cast<std::size_t>(e.worker)];
    }
  }
  // Each of five others with probability 2/5: 1200 of 3000, with a standard deviation of 27.
  for (std::size_t k = 0; k < heard.size(); ++k) {
    EXPECT_NEAR(heard[k], k % 7 == 0 ? 3000 : 1200, 135);
  }
}

TEST(Hypercube, NamesSizesThatWorkAndATopologyThatServesThisOne) {
  try {
    make_topology("hypercube", {.shape = even_hosts(3, 2)});
    FAIL();
  } catch (const std::invalid_argument& error) {
    const std::string message = error.what();
    for (const char* part : {"[topology]", "got 6", "4 or 8", "base_k"}) {
      EXPECT_NE(message.find(part), std::string::npos) << message;
    }
  }
}

TEST(BaseK, AveragesExactlyForEverySizeWithAtMostKNeighbours) {
  for (int degree = 1; degree <= 4; ++degree) {
    for (int n = 1; n <= 64; ++n) {
      SCOPED_TRACE("n=" + std::to_string(n) + " degree=" + std::to_string(degree));
      const Schedule schedule =
          make_topology("base_k", {.shape = even_hosts(n, 1), .degree = degree});
      EXPECT_TRUE(exact_average(schedule));
      // The bound of the paper, Theorem 1.
      const double bound = 2 * std::log(n) / std::log(degree + 1) + 2;
      EXPECT_LE(schedule.period, std::max(1., std::floor(bound + 1e-9)));
      for (int t = 0; t < schedule.period; ++t) {
        const Round round = round_at(schedule, t);
        expect_well_formed(round, n);
        for (int i = 0; i < n; ++i) {
          ASSERT_LE(static_cast<int>(row_of(round, i).size()), degree + 1);
        }
      }
    }
  }
}

TEST(BaseK, NeedsTheLogarithmOfTheSizeWhereItHasOnlySmallFactors) {
  const auto period = [](int n, int degree) {
    return make_topology("base_k", {.shape = even_hosts(n, 1), .degree = degree}).period;
  };
  EXPECT_EQ(period(64, 1), 6);
  EXPECT_EQ(period(27, 2), 3);
  EXPECT_EQ(period(12, 3), 2);
  EXPECT_EQ(period(5, 4), 1);
  EXPECT_EQ(period(5, 1), 5);
  EXPECT_THROW(period(5, 0), std::invalid_argument);
}

std::vector<double> host_share_crossing(const Schedule& schedule) {
  std::vector<double> share;
  for (int t = 0; t < schedule.period; ++t) {
    int crossing = 0;
    for (const auto& group : round_at(schedule, t).groups) {
      std::set<int> hosts;
      for (int member : group) hosts.insert(schedule.shape.host_of(member));
      if (hosts.size() > 1) crossing += static_cast<int>(hosts.size());
    }
    share.push_back(static_cast<double>(crossing) / schedule.shape.hosts());
  }
  return share;
}

TEST(Aer, JoinsHalfOfTheHostsInPairsPerRoundAndEverybodyAfterAPeriod) {
  for (int hosts : {4, 8, 16, 32}) {
    for (int per_host : {1, 2, 3}) {
      const Schedule schedule = make_topology("aer", {.shape = even_hosts(hosts, per_host)});
      EXPECT_EQ(schedule.period, 2 * std::countr_zero(static_cast<unsigned>(hosts)));
      EXPECT_TRUE(exact_average(schedule));
      for (double share : host_share_crossing(schedule)) EXPECT_EQ(share, 0.5);
    }
  }
}

TEST(Aer, PairsHostsWhoseNumbersDifferInOneBit) {
  const Schedule schedule = make_topology("aer", {.shape = even_hosts(8, 1)});
  for (int t = 0; t < 6; ++t) {
    for (const auto& group : round_at(schedule, t).groups) {
      if (group.size() == 2) {
        EXPECT_EQ(group[0] ^ group[1], 1 << (t / 2));
      }
    }
  }
}

TEST(Aer, AlternatesBetweenBothHostsAndInsideForTwoHosts) {
  const Schedule schedule = make_topology("aer", {.shape = {{1, 3}}});
  EXPECT_EQ(schedule.period, 2);
  EXPECT_EQ(round_at(schedule, 0), complete_round(4));
  EXPECT_EQ(round_at(schedule, 1), partition_round(4, {{0}, {1, 2, 3}}));
}

TEST(Aer, AveragesExactlyWhereNoPrimeFactorOfTheHostsIsAboveSeven) {
  for (int hosts = 1; hosts <= 40; ++hosts) {
    int rest = hosts;
    for (int p : {2, 3, 5, 7}) {
      while (rest % p == 0) rest /= p;
    }
    const Schedule schedule = make_topology("aer", {.shape = even_hosts(hosts, 2)});
    EXPECT_EQ(exact_average(schedule), rest == 1) << hosts;
    EXPECT_LT(period_contraction(schedule), 0.35) << hosts;
    EXPECT_LE(schedule.period, 9 * std::max(1., std::log2(hosts) / 2)) << hosts;
  }
}

/// A group of f hosts moves 2(f − 1)/f payloads per host; pairs 1.
TEST(Aer, MovesAtMostHalfAPayloadPerHostAndStepForEveryNumberOfHosts) {
  for (int hosts = 1; hosts <= 64; ++hosts) {
    const Schedule schedule = make_topology("aer", {.shape = even_hosts(hosts, 1)});
    double payloads = 0;
    for (int t = 0; t < schedule.period; ++t) {
      for (const auto& group : round_at(schedule, t).groups) {
        payloads += 2. * (static_cast<double>(group.size()) - 1);
      }
    }
    EXPECT_LE(payloads / hosts / schedule.period, 0.5 + 1e-12) << hosts;
  }
}

TEST(Aer, ContractsForUnequalHostsAndExactlyWhereTheirSizesAreAProduct) {
  EXPECT_TRUE(exact_average(make_topology("aer", {.shape = {{1, 2, 4}}})));
  EXPECT_TRUE(exact_average(make_topology("aer", {.shape = {{1, 2, 3, 6}}})));
  const double left = period_contraction(make_topology("aer", {.shape = {{1, 2, 4, 1}}}));
  EXPECT_GT(left, 0.1);
  EXPECT_LT(left, 0.6);
}

}  // namespace
}  // namespace gossamer
