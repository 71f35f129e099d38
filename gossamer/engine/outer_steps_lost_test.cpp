// Outer steps of a global average, over those that are left.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <vector>

#include "gossamer/base/index.h"
#include "gossamer/engine/census_steps.h"
#include "gossamer/engine/engine.h"
#include "gossamer/engine/testing/bowls.h"
#include "gossamer/engine/testing/engine_case.h"
#include "gossamer/engine/worker_threads.h"
#include "gossamer/graph/schedule_spec.h"
#include "gossamer/transport/threads.h"

namespace gossamer {
namespace outer_steps_lost_test {

constexpr int kElements = 6;
constexpr double kRate = 0.1;
constexpr int kEvery = 4;
constexpr int kSteps = 400;

struct Case {
  ScheduleSpec schedule = {.topology = "ring", .global_average = kEvery};
  std::vector<int> per_host = {2, 2, 1, 1};
  double outer_lr = 1;
  std::map<int, int> deaths = {};  ///< by worker, before which step
};

using Values = std::vector<double>;

/// Of a worker before a step.
struct Moment {
  Values x, anchor, velocity;
};

/// By rank and step; who dies has fewer.
std::vector<std::vector<Moment>> moments_of(const Case& given) {
  const HostShape shape{given.per_host};
  std::vector<std::vector<Moment>> all(at(shape.workers()));
  run_workers(make_threads_transports(engine_case::free_links(shape)), [&](Transport& transport) {
    const int rank = transport.describe().rank;
    Values x(kElements);
    Values g(kElements);
    Engine engine({.schedule = make_schedule(given.schedule, shape),
                   .pattern = "slowmo",
                   .optimizer = "sgd",
                   .groups = {{.lr = kRate,
                               .outer_every = kEvery,
                               .outer_momentum = 0.7,
                               .outer_lr = given.outer_lr}},
                   .lost = Lost::go_on},
                  transport, {{DType::f64, x.data(), g.data(), kElements, {{0, kElements, 0}}}});
    engine.set_anchors();
    engine.start_at(0);
    const auto death = given.deaths.find(rank);
    const int steps = death == given.deaths.end() ? kSteps : death->second;
    for (int step = 0; step < steps; ++step) {
      engine.quiesce();
      const auto state = [all = engine.state()](std::size_t which) {
        const auto* values = reinterpret_cast<const double*>(all.at(which).bytes.data());
        return Values(values, values + kElements);
      };
      all[at(rank)].push_back({state(0), state(1), state(2)});  // of sgd there is none
      bowls::set_gradient(rank, x, g);
      engine.step();
    }
  });
  return all;
}

/// Of all workers, densely.
std::vector<Moment> after_step(const std::vector<Moment>& before, const std::vector<int>& ranks,
                               const Schedule& schedule, int step, double outer_lr) {
  std::vector<Moment> after = before;
  const Round round = round_at(schedule, step);
  for (std::size_t k = 0; k < ranks.size(); ++k) {
    after[k].x.assign(kElements, 0);
    for (const Entry& entry : row_of(round, static_cast<int>(k))) {
      const Moment& other = before[at(entry.worker)];
      Values g(kElements);
      bowls::set_gradient(ranks[at(entry.worker)], other.x, g);
      for (std::size_t i = 0; i < kElements; ++i) {
        after[k].x[i] += entry.weight * (other.x[i] - kRate * g[i]);
      }
    }
    if ((step + 1) % kEvery != 0) continue;
    for (std::size_t i = 0; i < kElements; ++i) {
      Moment& own = after[k];
      own.velocity[i] = 0.7 * own.velocity[i] + outer_lr * (own.x[i] - own.anchor[i]);
      own.anchor[i] += own.velocity[i];
      own.x[i] = own.anchor[i];
    }
  }
  return after;
}

double spread_of(const std::vector<Moment>& moments, Values Moment::*which) {
  double spread = 0;
  for (std::size_t i = 0; i < kElements; ++i) {
    const auto less = [&](const Moment& a, const Moment& b) {
      return (a.*which)[i] < (b.*which)[i];
    };
    const auto [low, high] = std::ranges::minmax_element(moments, less);
    spread = std::max(spread, ((*high).*which)[i] - ((*low).*which)[i]);
  }
  return spread;
}

/// A round may find some with the lost worker's part and some without. Then their slow weights
/// differ. Each outer step after that takes √0.7 of the difference.
void expect_slowmo_among_those_left(const Case& given) {
  const auto all = moments_of(given);
  std::vector<int> ranks;
  std::vector<int> per_host;
  for (std::size_t host = 0, rank = 0; host < given.per_host.size(); ++host) {
    int left = 0;
    for (int k = 0; k < given.per_host[host]; ++k, ++rank) {
      if (given.deaths.contains(static_cast<int>(rank))) continue;
      ranks.push_back(static_cast<int>(rank));
      ++left;
    }
    if (left > 0) per_host.push_back(left);
  }
  const Schedule schedule = make_schedule(given.schedule, HostShape{per_host});
  const auto moment = [&](int step) {
    std::vector<Moment> moments;
    for (const int rank : ranks) moments.push_back(all[at(rank)].at(at(step)));
    return moments;
  };
  int last = 0;
  for (const auto& [worker, step] : given.deaths) last = std::max(last, step);
  for (int step = last + 3 * static_cast<int>(kStepsOfACensus); step + 1 < kSteps; ++step) {
    const auto expected = after_step(moment(step), ranks, schedule, step, given.outer_lr);
    const auto found = moment(step + 1);
    for (std::size_t k = 0; k < ranks.size(); ++k) {
      for (const auto which : {&Moment::x, &Moment::anchor, &Moment::velocity}) {
        for (std::size_t i = 0; i < kElements; ++i) {
          ASSERT_NEAR((found[k].*which)[i], (expected[k].*which)[i], 1e-12)
              << "worker " << ranks[k] << ", step " << step;
        }
      }
    }
  }
  for (const auto which : {&Moment::x, &Moment::anchor, &Moment::velocity}) {
    EXPECT_LT(spread_of(moment(kSteps - kEvery), which), 1e-4) << "after an outer step";
  }
}

TEST(OuterStepsLost, OfARing) { expect_slowmo_among_those_left({.deaths = {{1, 21}, {4, 50}}}); }

TEST(OuterStepsLost, WithASmallerOuterRate) {
  expect_slowmo_among_those_left({.outer_lr = 0.6, .deaths = {{0, 23}}});
}

TEST(OuterStepsLost, OfRoundsThatFollowTheHosts) {
  expect_slowmo_among_those_left(
      {.schedule = {.topology = "alternating_exponential_ring", .global_average = kEvery},
       .deaths = {{0, 7}, {1, 20}}});
}

TEST(OuterStepsLost, OfLocalSteps) {
  expect_slowmo_among_those_left(
      {.schedule = {.topology = "complete", .local_steps = kEvery}, .deaths = {{5, 3}, {2, 36}}});
}

TEST(OuterStepsLost, WhereTheTopologyDoesNotServeSoMany) {
  const auto all = moments_of({.schedule = {.topology = "hypercube", .global_average = kEvery},
                               .per_host = {1, 1, 1, 1},
                               .deaths = {{3, 30}}});
  std::vector<Moment> after_an_outer_step;
  for (const int rank : {0, 1, 2}) after_an_outer_step.push_back(all[at(rank)][kSteps - kEvery]);
  EXPECT_LT(spread_of(after_an_outer_step, &Moment::x), 1e-4);
}

}  // namespace outer_steps_lost_test
}  // namespace gossamer
