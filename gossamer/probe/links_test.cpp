/// Links that are emulated, so that it is known what the probe must find. Time decides nothing: a
/// loaded machine makes links slower, not faster, and what is compared differs by a factor of 16.

#include "gossamer/probe/links.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "gossamer/probe/probe_case.h"

namespace gossamer {
namespace {

ClusterSpec cluster_of(const std::vector<int>& workers, const std::vector<double>& rates,
                       double latency_s) {
  ClusterSpec cluster;
  for (std::size_t h = 0; h < workers.size(); ++h) {
    cluster.hosts.push_back(
        {.workers = workers[h], .link = {rates[h], latency_s}, .inside = {200e6, 1e-3}});
  }
  return cluster;
}

ClusterSpec probed(const ClusterSpec& cluster, const LinkProbeOptions& options = {}) {
  const auto all = probe_case::on_all<ClusterSpec>(
      cluster, [&](ExchangeRunner& runner, Collectives& collectives) {
        return probe_links(runner, collectives, options);
      });
  for (const ClusterSpec& each : all) {  // the same bits everywhere
    for (std::size_t h = 0; h < each.hosts.size(); ++h) {
      EXPECT_EQ(each.hosts[h].link.rate_bytes_per_s, all[0].hosts[h].link.rate_bytes_per_s);
      EXPECT_EQ(each.hosts[h].inside.latency_s, all[0].hosts[h].inside.latency_s);
    }
  }
  return all[0];
}

TEST(ProbeLinks, TellsSlowLinksFromFastOnes) {
  const ClusterSpec cluster = cluster_of({2, 1, 2}, {4e6, 4e6, 0.25e6}, 5e-3);
  const ClusterSpec found = probed(cluster, {.transfer_s = 0.1});
  ASSERT_EQ(found.shape().workers_per_host, cluster.shape().workers_per_host);
  for (std::size_t h = 0; h < 3; ++h) {
    const LinkSpec& link = found.hosts[h].link;
    EXPECT_GT(link.rate_bytes_per_s, 0);
    // Between the long transfer alone and what is left of it when the short one was held up.
    EXPECT_LT(link.rate_bytes_per_s, 1.6 * cluster.hosts[h].link.rate_bytes_per_s);
    EXPECT_GE(link.latency_s, 4.9e-3);  // rounded to three digits
  }
  EXPECT_GT(found.hosts[0].link.rate_bytes_per_s, 2 * found.hosts[2].link.rate_bytes_per_s);
  EXPECT_LT(found.hosts[0].inside.rate_bytes_per_s, 1.6 * 200e6);
  EXPECT_GE(found.hosts[0].inside.latency_s, 0.99e-3);
  EXPECT_TRUE(std::isinf(found.hosts[1].inside.rate_bytes_per_s));
}

TEST(MergeDevices, TakesTheMeanOfAHostAndEvensOutLikeOnes) {
  const ClusterSpec hosts = cluster_of({2, 1, 1, 1}, {1e9, 1e9, 1e9, 1e9}, 0);
  const std::vector<LinkSpec> own = {{20e9, 10e-6}, {30e9, 20e-6}, {24.8e9, 16e-6}, {}, {5e9, 0}};
  const auto all =
      probe_case::on_all<ClusterSpec>(hosts, [&](ExchangeRunner&, Collectives& collectives) {
        ClusterSpec found = hosts;
        merge_devices(collectives, own[static_cast<std::size_t>(collectives.rank())], found);
        return found;
      });
  for (const ClusterSpec& found : all) {
    // 24 and 24.8 GB/s are alike: two copies at 20 and 30 take as long as two at 24.
    EXPECT_NEAR(found.hosts[0].device.rate_bytes_per_s, 24.4e9, 5e7);
    EXPECT_NEAR(found.hosts[1].device.rate_bytes_per_s, 24.4e9, 5e7);
    EXPECT_NEAR(found.hosts[0].device.latency_s, 15.5e-6, 1e-7);
    EXPECT_FALSE(is_limited(found.hosts[2].device));
    EXPECT_NEAR(found.hosts[3].device.rate_bytes_per_s, 5e9, 1e6);
    EXPECT_EQ(found.hosts[3].link.rate_bytes_per_s, 1e9);
  }
}

TEST(ProbeLinks, CountsWhatFramesCost) {
  const ClusterSpec cluster = cluster_of({1, 1}, {1e6, 1e6}, 0);
  const ClusterSpec found = probed(cluster, {.transfer_s = 0.02, .overhead = 1000});
  EXPECT_GT(found.hosts[0].link.rate_bytes_per_s, 20e6);
}

TEST(ProbeLinks, LeavesUnlimitedWhatIsNotThere) {
  const ClusterSpec single = probed(cluster_of({1}, {1e6}, 0));
  EXPECT_TRUE(std::isinf(single.hosts[0].link.rate_bytes_per_s));
  EXPECT_TRUE(std::isinf(single.hosts[0].inside.rate_bytes_per_s));
  EXPECT_EQ(single.hosts[0].link.latency_s, 0);
}

TEST(RoundsOfPairs, BringEveryPairOfHostsTogetherOnce) {
  EXPECT_TRUE(rounds_of_pairs(1).empty());
  for (int hosts = 2; hosts <= 17; ++hosts) {
    const auto rounds = rounds_of_pairs(hosts);
    EXPECT_EQ(std::ssize(rounds), hosts % 2 == 0 ? hosts - 1 : hosts);
    std::set<std::pair<int, int>> met;
    for (const auto& round : rounds) {
      std::set<int> busy;
      for (const auto& [a, b] : round) {
        EXPECT_LT(a, b);
        EXPECT_TRUE(busy.insert(a).second && busy.insert(b).second) << "in two pairs at once";
        EXPECT_TRUE(met.insert({a, b}).second) << "met twice";
      }
    }
    EXPECT_EQ(std::ssize(met), hosts * (hosts - 1) / 2);
  }
}

TEST(EvenOut, MakesWhatIsAlikeEqual) {
  const double infinity = std::numeric_limits<double>::infinity();
  EXPECT_EQ(even_out({102, 30, 100, infinity, 98}, 0.05),
            (std::vector<double>{100, 30, 100, infinity, 100}));
  EXPECT_EQ(even_out({1234567}, 0.05), std::vector<double>{1234567});
  EXPECT_EQ(even_out({0, 0}, 0.05), (std::vector<double>{0, 0}));
  EXPECT_EQ(even_out({1.0, 1.04, 1.08}, 0.05), (std::vector<double>{1.02, 1.02, 1.08}));
}

}  // namespace
}  // namespace gossamer
