#include "gossamer/base/cluster.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <stdexcept>

#include "gossamer/base/test_errors.h"

namespace gossamer {
namespace {

TEST(HostShape, RanksAreDealtHostByHost) {
  const HostShape shape{{2, 3, 1}};
  EXPECT_EQ(shape.hosts(), 3);
  EXPECT_EQ(shape.workers(), 6);
  EXPECT_EQ(shape.first_rank(0), 0);
  EXPECT_EQ(shape.first_rank(1), 2);
  EXPECT_EQ(shape.first_rank(2), 5);
}

TEST(HostShape, HostOfInvertsFirstRank) {
  const HostShape shape{{2, 3, 1, 4}};
  int rank = 0;
  for (int host = 0; host < shape.hosts(); ++host) {
    EXPECT_EQ(shape.first_rank(host), rank);
    const int workers = shape.workers_per_host[static_cast<std::size_t>(host)];
    for (int mate = 0; mate < workers; ++mate, ++rank) {
      EXPECT_EQ(shape.host_of(rank), host);
      EXPECT_EQ(shape.local_rank_of(rank), mate);
    }
  }
}

TEST(HostShape, ARankThatDoesNotExistIsABug) {
  const HostShape shape{{2, 3}};
  EXPECT_THROW(shape.host_of(-1), std::logic_error);
  EXPECT_THROW(shape.host_of(5), std::logic_error);
  EXPECT_THROW(shape.first_rank(2), std::logic_error);
}

TEST(EvenHosts, EveryHostHasTheSameNumber) {
  EXPECT_EQ(even_hosts(4, 2).workers_per_host, (std::vector<int>{2, 2, 2, 2}));
  EXPECT_EQ(even_hosts(1, 1).workers(), 1);
}

TEST(EvenHosts, RefusesLessThanOne) {
  EXPECT_THROW(even_hosts(0, 2), std::invalid_argument);
  EXPECT_THROW(even_hosts(2, 0), std::invalid_argument);
  EXPECT_THROW(even_hosts(-1, 1), std::invalid_argument);
}

TEST(ClusterSpec, HasTheShapeOfItsHosts) {
  ClusterSpec spec;
  spec.hosts = {{.workers = 2, .link = {}, .inside = {}}, {.workers = 5, .link = {}, .inside = {}}};
  EXPECT_EQ(spec.shape().workers_per_host, (std::vector<int>{2, 5}));
}

TEST(ClusterSpec, WhatMakesNoSenseIsRefused) {
  const double nan = std::nan("");
  const auto one = [](int workers, LinkSpec link) {
    return ClusterSpec{{{.workers = workers, .link = link, .inside = {}}}};
  };
  EXPECT_NO_THROW(check_cluster(one(1, {})));
  EXPECT_THROW(check_cluster({}), std::invalid_argument);
  EXPECT_THROW(check_cluster(one(0, {})), std::invalid_argument);
  for (const LinkSpec& link : {LinkSpec{0, 0}, {nan, 0}, {1, -1}, {1, nan}, {1, 1e7}}) {
    EXPECT_THROW(check_cluster(one(1, link)), std::invalid_argument);
    EXPECT_THROW(check_cluster({{{.workers = 1, .link = {}, .inside = link}}}),
                 std::invalid_argument);
  }
}

TEST(LinkSpec, IsUnlimitedUnlessSaidOtherwise) {
  EXPECT_TRUE(std::isinf(LinkSpec{}.rate_bytes_per_s));
  EXPECT_EQ(LinkSpec{}.latency_s, 0);
}

TEST(HostShape, MoreWorkersThanThereCanBeAreRefused) {
  EXPECT_EQ(even_hosts(kMostWorkers, 1).workers(), kMostWorkers);
  EXPECT_THROW(even_hosts(kMostWorkers + 1, 1), std::invalid_argument);
  constexpr int kMost = std::numeric_limits<int>::max();
  EXPECT_EQ(message_of([] { even_hosts(kMost, kMost, "x"); }),
            "[x] there may be up to 65536 workers, got 4611686014132420609; give fewer hosts or "
            "workers");
  EXPECT_THROW(check_host_shape({{kMost, kMost}}), std::invalid_argument);
  EXPECT_THROW(check_host_shape({{2, 0}}), std::invalid_argument);
  EXPECT_THROW(check_host_shape({}), std::invalid_argument);
  EXPECT_THROW(check_cluster({{{.workers = kMost}, {.workers = kMost}}}), std::invalid_argument);
  check_host_shape({{1, 2, 3}});
}

}  // namespace
}  // namespace gossamer
