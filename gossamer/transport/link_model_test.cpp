#include "gossamer/transport/link_model.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <map>
#include <stdexcept>

#include "gossamer/base/rng.h"

namespace gossamer {
namespace {

constexpr double kRate = 4.096e6;  // bytes/s, so slow that frames have the least size, 1 KiB
constexpr double kFrame_s = 1024 / kRate;
constexpr std::int64_t kSize = 1 << 20;
constexpr double kTransfer_s = static_cast<double>(kSize) / kRate;
constexpr double kRounding_s = 1e-9;

ClusterSpec cluster_of(int hosts, int per_host, const LinkSpec& link, const LinkSpec& inside = {}) {
  ClusterSpec cluster;
  for (int h = 0; h < hosts; ++h) cluster.hosts.push_back({per_host, link, inside});
  return cluster;
}

// Delivery times by flight when the model is advanced in steps of `step_s`.
std::map<FlightId, double> run(LinkModel& model, double step_s = 1e9) {
  std::map<FlightId, double> times;
  double now_s = 0;
  while (model.next_delivery_bound_s() < std::numeric_limits<double>::infinity()) {
    now_s += step_s;
    for (const Delivery& d : model.advance(now_s)) times[d.flight] = d.time_s;
  }
  return times;
}

TEST(LinkModel, FrameIsThirtyMicrosecondsWithinBounds) {
  EXPECT_EQ(frame_bytes(1), 1 << 10);
  EXPECT_EQ(frame_bytes(100e6), 3000);
  EXPECT_EQ(frame_bytes(std::numeric_limits<double>::infinity()), 1 << 16);
}

TEST(LinkModel, OneMessageTakesTransferLatencyAndOneFrame) {
  LinkModel model(cluster_of(2, 1, {kRate, 0.125}));
  const FlightId flight = model.launch(0.5, 0, 1, kSize);
  EXPECT_NEAR(run(model).at(flight), 0.5 + kTransfer_s + 0.125 + kFrame_s, kRounding_s);
}

TEST(LinkModel, EmptyMessageTakesTheLatency) {
  LinkModel model(cluster_of(2, 1, {kRate, 0.125}));
  const FlightId flight = model.launch(1, 0, 1, 0);
  EXPECT_NEAR(run(model).at(flight), 1.125, kRounding_s);
}

TEST(LinkModel, LastFrameMayBeShort) {
  LinkModel model(cluster_of(2, 1, {kRate, 0}));
  const FlightId flight = model.launch(0, 0, 1, 2 * 1024 + 100);
  // The ingress follows one frame behind the egress; the short frame waits for nobody there.
  EXPECT_NEAR(run(model).at(flight), 3 * kFrame_s + 100 / kRate, kRounding_s);
}

TEST(LinkModel, WorkersOfOneHostShareItsEgress) {
  LinkModel model(cluster_of(3, 2, {kRate, 0}));
  const FlightId first = model.launch(0, 0, 2, kSize);
  const FlightId second = model.launch(0, 1, 4, kSize);
  const auto times = run(model);
  EXPECT_NEAR(times.at(first), 2 * kTransfer_s, kRounding_s);  // its last frame goes last but one
  EXPECT_NEAR(times.at(second), 2 * kTransfer_s + kFrame_s, kRounding_s);
}

TEST(LinkModel, ShortMessageIsNotStuckBehindALongOne) {
  LinkModel model(cluster_of(3, 2, {kRate, 0}));
  model.launch(0, 0, 2, 64 * kSize);
  const FlightId small = model.launch(0.5 * kFrame_s, 1, 4, 1024);
  EXPECT_NEAR(run(model).at(small), 3 * kFrame_s, kRounding_s);  // one foreign frame, own, ingress
}

TEST(LinkModel, ToTheSamePeerOneAfterTheOther) {
  LinkModel model(cluster_of(2, 2, {kRate, 0}));
  const FlightId first = model.launch(0, 0, 2, kSize);
  const FlightId second = model.launch(0, 0, 2, kSize);
  const FlightId third = model.launch(0, 0, 2, kSize);
  model.advance(kTransfer_s / 2);
  model.cancel(second);
  const auto times = run(model);
  EXPECT_NEAR(times.at(first), kTransfer_s + kFrame_s, kRounding_s);
  EXPECT_NEAR(times.at(third), 2 * kTransfer_s + kFrame_s, kRounding_s);
}

TEST(LinkModel, PairsShareALinkHoweverManyMessagesTheyHave) {
  LinkModel model(cluster_of(3, 1, {kRate, 0}));
  for (int k = 0; k < 3; ++k) model.launch(0, 0, 1, kSize);
  const FlightId other = model.launch(0, 0, 2, kSize);
  EXPECT_NEAR(run(model).at(other), 2 * kTransfer_s + kFrame_s, kFrame_s + kRounding_s);
}

TEST(LinkModel, HostsDoNotDisturbEachOther) {
  LinkModel model(cluster_of(4, 1, {kRate, 0.01}));
  const FlightId first = model.launch(0, 0, 1, kSize);
  const FlightId second = model.launch(0, 2, 3, kSize);
  const auto times = run(model);
  EXPECT_NEAR(times.at(first), kTransfer_s + 0.01 + kFrame_s, kRounding_s);
  EXPECT_NEAR(times.at(second), kTransfer_s + 0.01 + kFrame_s, kRounding_s);
}

TEST(LinkModel, BothDirectionsOfALinkAreIndependent) {
  LinkModel model(cluster_of(2, 1, {kRate, 0}));
  const FlightId there = model.launch(0, 0, 1, kSize);
  const FlightId back = model.launch(0, 1, 0, kSize);
  const auto times = run(model);
  EXPECT_NEAR(times.at(there), kTransfer_s + kFrame_s, kRounding_s);
  EXPECT_NEAR(times.at(back), kTransfer_s + kFrame_s, kRounding_s);
}

TEST(LinkModel, IncastSharesTheIngress) {
  LinkModel model(cluster_of(4, 1, {kRate, 0}));
  std::map<FlightId, double> times;
  for (int from = 1; from < 4; ++from) model.launch(0, from, 0, kSize);
  for (const auto& [flight, time_s] : run(model)) {
    EXPECT_GE(time_s, 3 * kTransfer_s + kFrame_s - 2 * kFrame_s - kRounding_s);
    EXPECT_LE(time_s, 3 * kTransfer_s + kFrame_s + kRounding_s);
    times[flight] = time_s;
  }
  EXPECT_EQ(times.size(), 3U);
  EXPECT_NEAR(std::max({times[1], times[2], times[3]}), 3 * kTransfer_s + kFrame_s, kRounding_s);
}

TEST(LinkModel, SlowerEndIsTheBottleneck) {
  ClusterSpec cluster = cluster_of(2, 1, {kRate, 0});
  cluster.hosts[1].link.rate_bytes_per_s = 4 * kRate;
  for (const auto& [from, to] : {std::pair{0, 1}, std::pair{1, 0}}) {
    LinkModel model(cluster);
    const FlightId flight = model.launch(0, from, to, kSize);
    EXPECT_NEAR(run(model).at(flight), kTransfer_s + kFrame_s / 4, kRounding_s);
  }
}

TEST(LinkModel, LargerLatencyOfTheTwoEndsCounts) {
  ClusterSpec cluster = cluster_of(2, 1, {kRate, 0.001});
  cluster.hosts[1].link.latency_s = 0.5;
  for (const auto& [from, to] : {std::pair{0, 1}, std::pair{1, 0}}) {
    LinkModel model(cluster);
    const FlightId flight = model.launch(0, from, to, 1024);
    EXPECT_NEAR(run(model).at(flight), 0.5 + 2 * kFrame_s, kRounding_s);
  }
}

TEST(LinkModel, EachWayBetweenTwoWorkersOfAHostIsApartFromAllOthers) {
  LinkModel model(cluster_of(2, 3, {kRate, 0}, {2 * kRate, 0.01}));
  const FlightId first = model.launch(0, 0, 1, kSize);
  const FlightId back = model.launch(0, 1, 0, kSize);
  const FlightId other = model.launch(0, 2, 1, kSize);
  const FlightId next = model.launch(0, 2, 1, kSize);
  const FlightId crossing = model.launch(0, 0, 3, kSize);
  const auto times = run(model);
  for (const FlightId flight : {first, back, other}) {
    EXPECT_NEAR(times.at(flight), kTransfer_s / 2 + 0.01, kRounding_s);
  }
  EXPECT_NEAR(times.at(next), kTransfer_s + 0.01, kRounding_s);
  EXPECT_NEAR(times.at(crossing), kTransfer_s + kFrame_s, kRounding_s);
}

TEST(LinkModel, WayWithoutCostNeedsNoFlight) {
  LinkModel model(cluster_of(2, 2, {kRate, 0}));
  EXPECT_EQ(model.launch(0, 0, 1, kSize), 0U);
  EXPECT_NE(model.launch(0, 0, 2, kSize), 0U);
}

TEST(LinkModel, CancelledFlightFreesTheLink) {
  LinkModel model(cluster_of(2, 2, {kRate, 0}));
  const FlightId cancelled = model.launch(0, 0, 2, kSize);
  const FlightId other = model.launch(0, 1, 3, kSize);
  EXPECT_TRUE(model.advance(kTransfer_s).empty());  // each has half of its frames behind it
  model.cancel(cancelled);
  const auto times = run(model);
  EXPECT_EQ(times.count(cancelled), 0U);
  EXPECT_NEAR(times.at(other), 1.5 * kTransfer_s + kFrame_s, kFrame_s + kRounding_s);
}

TEST(LinkModel, NewRateHoldsFromTheLastAdvanceOn) {
  LinkModel model(cluster_of(2, 1, {kRate, 0}));
  const FlightId flight = model.launch(0, 0, 1, kSize);
  model.advance(kTransfer_s / 2);
  for (const int host : {0, 1}) model.set_link(host, {kRate / 4, 0});
  EXPECT_NEAR(run(model).at(flight), kTransfer_s / 2 + 2 * kTransfer_s + 4 * kFrame_s,
              4 * kFrame_s + kRounding_s);
}

TEST(LinkModel, LinksMustCarrySomething) {
  LinkModel model(cluster_of(2, 1, {kRate, 0}));
  EXPECT_THROW(model.set_link(0, {0, 0}), std::invalid_argument);
  EXPECT_THROW(model.set_link(0, {kRate, -1}), std::invalid_argument);
  EXPECT_THROW(LinkModel(cluster_of(1, 1, {-1, 0})), std::invalid_argument);
}

// A seeded load of random messages over a cluster with unequal hosts.
std::vector<Delivery> run_load(std::uint64_t seed, double step_s) {
  ClusterSpec cluster = cluster_of(3, 2, {kRate, 0.003}, {3 * kRate, 0.0001});
  cluster.hosts[2] = {1, {kRate / 3, 0.02}, {}};
  LinkModel model(cluster);
  Rng rng(seed);
  for (int i = 0; i < 100; ++i) {
    const int from = static_cast<int>(rng.below(5));
    const int to = static_cast<int>((static_cast<std::uint64_t>(from) + 1 + rng.below(4)) % 5);
    model.launch(rng.uniform(), from, to, static_cast<std::int64_t>(rng.below(100'000)));
  }
  std::vector<Delivery> all;
  for (double now_s = step_s; model.next_delivery_bound_s() < 1e9; now_s += step_s) {
    const double bound_s = model.next_delivery_bound_s();
    for (const Delivery& d : model.advance(now_s)) {
      EXPECT_GE(d.time_s, bound_s - kRounding_s) << "seed " << seed;
      all.push_back(d);
    }
  }
  return all;
}

TEST(LinkModel, TimesDoNotDependOnWhenTheModelIsAdvanced) {
  for (std::uint64_t seed = 0; seed < 10; ++seed) {
    const auto at_once = run_load(seed, 1e6);
    const auto in_steps = run_load(seed, 0.0007);
    ASSERT_EQ(at_once.size(), 100U);
    ASSERT_EQ(in_steps.size(), 100U);
    for (std::size_t i = 0; i < at_once.size(); ++i) {
      EXPECT_EQ(at_once[i].flight, in_steps[i].flight) << "seed " << seed;
      EXPECT_EQ(at_once[i].time_s, in_steps[i].time_s) << "seed " << seed;
      EXPECT_LE(at_once[i > 0 ? i - 1 : 0].time_s, at_once[i].time_s);
    }
  }
}

}  // namespace
}  // namespace gossamer
