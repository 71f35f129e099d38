#include "gossamer/cli/topology/report.h"

#include <gtest/gtest.h>

#include <numeric>
#include <string>

#include "gossamer/base/json.h"
#include "gossamer/graph/modifiers.h"
#include "gossamer/graph/topology.h"

namespace gossamer {
namespace {

TopologyReport report_of(const char* name, const HostShape& shape) {
  return report_on(name, {}, make_topology(name, {.shape = shape}));
}

std::size_t count_of(const std::string& text, const std::string& part) {
  std::size_t count = 0;
  for (auto at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

TEST(TopologyReport, CountsExactlyHalfAPayloadPerHostForAerOnPowersOfTwo) {
  for (int hosts : {2, 4, 8}) {
    for (int per_host : {1, 2, 3, 5, 7}) {
      EXPECT_EQ(report_of("alternating_exponential_ring", even_hosts(hosts, per_host))
                    .bytes_per_host_per_step,
                0.5)
          << hosts << " x " << per_host;
    }
  }
}

TEST(TopologyReport, StaysAtHalfAPayloadOrBelowForAerOnAnyEqualHosts) {
  for (int hosts = 1; hosts <= 16; ++hosts) {
    EXPECT_LE(
        report_of("alternating_exponential_ring", even_hosts(hosts, 2)).bytes_per_host_per_step,
        0.5 + 1e-12)
        << hosts;
  }
}

TEST(TopologyReport, CountsTwoMessagesAndTwoPayloadsForARing) {
  const TopologyReport report = report_of("ring", even_hosts(8, 1));
  EXPECT_EQ(report.messages_per_worker_per_step, 2);
  EXPECT_EQ(report.bytes_per_host_per_step, 2);
  EXPECT_EQ(report.costs[0].most_neighbours, 2);
  // Two workers per host: one neighbour of each is a mate.
  EXPECT_EQ(report_of("ring", even_hosts(4, 2)).costs[0].inside_per_worker, 1);
}

TEST(TopologyReport, KnowsTheHubOfAStar) {
  const TopologyReport report = report_of("star", even_hosts(6, 1));
  EXPECT_EQ(report.costs[0].busiest_host, 5);
  EXPECT_EQ(report.costs[0].between_per_host, 10. / 6);
}

TEST(AsFraction, FindsSmallDenominators) {
  EXPECT_EQ(as_fraction(1. / 3), "1/3");
  EXPECT_EQ(as_fraction(7. / 15), "7/15");
  EXPECT_EQ(as_fraction(2), "2");
  EXPECT_EQ(as_fraction(0), "0");
  EXPECT_EQ(as_fraction(0.7310585), "0.7311");
}

TEST(ToText, SaysThatADirectedGraphIsForPushSumInsteadOfHowItContracts) {
  const std::string text = to_text(report_of("random_directed", even_hosts(4, 2)), false);
  EXPECT_NE(text.find("push_sum"), std::string::npos) << text;
  EXPECT_EQ(text.find("contraction"), std::string::npos) << text;
}

TEST(ToJson, HoldsRowsOrColumnsOfWThatSumToOneInEveryRound) {
  for (const Topology& topology : topologies()) {
    if (topology.name == "hypercube") continue;
    const TopologyReport report = report_of(topology.name.data(), {{1, 2, 4}});
    const Json json = Json::parse(to_json(report));
    EXPECT_EQ(json["name"], topology.name);
    EXPECT_EQ(json["workers"], 7);
    EXPECT_EQ(json["hosts"], 3);
    EXPECT_EQ(json["rounds"].size(), report.rounds.size());
    const bool by_column = topology.stochasticity == Stochasticity::column;
    EXPECT_NE(json.contains("rho"), by_column);
    for (const Json& round : json["rounds"]) {
      std::vector<double> sums(7, 0.0);
      for (const Json& edge : round["edges"]) {
        sums.at(edge[by_column ? 1 : 0].get<std::size_t>()) += edge[2].get<double>();
      }
      for (double sum : sums) EXPECT_NEAR(sum, 1, 1e-12);
    }
  }
}

TEST(ToSvg, DrawsEveryWorkerInEveryRoundAndNeedsNothingFromOutside) {
  for (const Topology& topology : topologies()) {
    const TopologyReport report = report_of(topology.name.data(), even_hosts(4, 4));
    const std::string svg = to_svg(report);
    EXPECT_EQ(count_of(svg, "class=\"rank"), 16 * report.rounds.size()) << topology.name;
    EXPECT_EQ(count_of(svg, "http"), 1u) << "only the namespace";
    EXPECT_EQ(count_of(svg, "<g "), count_of(svg, "</g>"));
    EXPECT_EQ(count_of(svg, "<text"), count_of(svg, "</text>"));
    EXPECT_EQ(count_of(svg, "nan"), 0u);
  }
}

TEST(ToSvg, StopsAfterTwentyFourRoundsAndSaysSo) {
  const Schedule schedule =
      with_local_steps(make_topology("ring", {.shape = even_hosts(3, 1)}), 30);
  const std::string svg = to_svg(report_on("ring", {"local_steps=30"}, schedule));
  EXPECT_NE(svg.find("and 6 more rounds"), std::string::npos);
  EXPECT_NE(svg.find("ring + local_steps=30"), std::string::npos);
}

}  // namespace
}  // namespace gossamer
