#include "gossamer/model/topology_orders.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <stdexcept>
#include <string_view>

#include "gossamer/graph/topology.h"

namespace gossamer {
namespace {

TEST(TopologyOrders, AreAsTheLecturePrintsThem) {
  struct Printed {
    std::string_view communication;
    std::string_view iterations;
  };
  const std::map<std::string_view, Printed> printed{
      {"ring", {"2", "n^7"}},
      {"star", {"n", "n^7"}},
      {"grid", {"4", "n^5 log2(n)^2"}},
      {"torus", {"4", "n^5"}},
      {"random", {"n/2", "n^3"}},
      {"exponential", {"~1", "n^3 log2(n)^2"}},
      {"one_peer_exponential", {"1", "n^3 log2(n)^2"}}};
  for (const TopologyOrder& order : published_topology_orders()) {
    const Printed& row = printed.at(order.topology);
    EXPECT_EQ(order.communication, row.communication) << order.topology;
    EXPECT_EQ(product_text(factors_of(order)), row.iterations) << order.topology;
  }
  EXPECT_EQ(published_topology_orders().size(), printed.size());
}

TEST(TopologyOrders, AreWorkedOutForTheWorkersAtHand) {
  const std::vector<TopologyComparison> rows = compare_topologies(even_hosts(16, 1));
  ASSERT_EQ(rows.size(), 7U);
  const auto row_of = [&](std::string_view name) {
    for (const TopologyComparison& row : rows) {
      if (row.order.topology == name) return row;
    }
    throw std::logic_error("no such topology");
  };
  const double ring = 1 - 2.0 / 3 * (1 - std::cos(2 * std::acos(-1.0) / 16));
  EXPECT_NEAR(row_of("ring").rho, ring, 1e-12);
  EXPECT_NEAR(row_of("ring").iterations, 4096 * std::pow(ring, 4) / std::pow(1 - ring, 2), 1e-6);
  EXPECT_DOUBLE_EQ(row_of("ring").printed_iterations, std::pow(16, 7));
  EXPECT_NEAR(row_of("star").rho, 15.0 / 16, 1e-12);
  EXPECT_NEAR(row_of("exponential").rho, 1 - 2.0 / 5, 1e-12);
  EXPECT_NEAR(row_of("one_peer_exponential").rho, 0.75, 1e-12);
  EXPECT_DOUBLE_EQ(row_of("grid").printed_iterations, std::pow(16, 5) * 16);
  const std::map<std::string_view, int> neighbours{{"ring", 2},        {"star", 15},
                                                   {"grid", 4},        {"torus", 4},
                                                   {"exponential", 4}, {"one_peer_exponential", 1}};
  for (const auto& [name, count] : neighbours) EXPECT_EQ(row_of(name).neighbours, count) << name;
}

TEST(TopologyOrders, OfVeryManyWorkersAreOnlyThePrintedOnes) {
  for (const TopologyComparison& row : compare_topologies(even_hosts(60'000, 1))) {
    EXPECT_GE(row.printed_iterations, 1e14);
    EXPECT_TRUE(std::isnan(row.iterations) && std::isnan(row.rho)) << row.order.topology;
  }
}

TEST(TopologyOrders, RefuseWhatTheTheoryDoesNotCover) {
  EXPECT_THROW(theory_mixing(make_topology("random_directed", {.shape = even_hosts(8, 1)})),
               std::invalid_argument);
}

}  // namespace
}  // namespace gossamer
