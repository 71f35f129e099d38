/// Virtual workers of the lab go where engines go: the same rules, the same trajectories.

#include <gtest/gtest.h>

#include "gossamer/algo/optimizer.h"
#include "gossamer/engine/testing/engine_case.h"
#include "gossamer/graph/modifiers.h"
#include "gossamer/graph/topology.h"
#include "gossamer/lab/virtual_workers.h"

namespace gossamer {
namespace {

using namespace engine_case;  // NOLINT: all of it is about this test

Case case_of(const std::string& pattern, const std::string& optimizer, Schedule schedule) {
  Case c;
  c.options.schedule = std::move(schedule);
  c.options.pattern = pattern;
  c.options.optimizer = optimizer;
  c.options.groups = {{.lr = 0.05, .weight_decay = 0.01, .consensus = 0.7, .outer_every = 2}};
  c.bucket_sizes = {9};
  c.group_of.assign(9, 0);
  c.steps = 13;
  return c;
}

Matrix lab_run(const Case& c, const Gradient& gradient) {
  const auto d = static_cast<std::size_t>(c.dimension());
  VirtualWorkers workers(c.options.schedule, c.options.pattern, c.options.optimizer,
                         static_cast<int>(d), c.options.groups[0]);
  const std::vector<double> first = first_model<double>(c)->x;
  for (std::size_t k = 0; k < workers.x().size(); ++k) workers.x()[k] = first[k % d];
  workers.start();
  Matrix rows;
  for (std::int64_t step = 0; step <= c.steps; ++step) {
    rows.clear();
    for (std::size_t i = 0; i < workers.x().size(); i += d) {
      const auto row = workers.x().subspan(i, d);
      rows.emplace_back(row.begin(), row.end());
    }
    if (step == c.steps) break;
    for (std::size_t i = 0; i < rows.size(); ++i) {
      const std::vector<double> g = gradient(static_cast<int>(i), step, rows[i]);
      std::ranges::copy(g, workers.g().subspan(i * d, d).begin());
    }
    workers.step(c.options.groups[0]);
  }
  return rows;
}

std::vector<Schedule> schedules() {
  const auto on = [](const char* topology, const HostShape& shape) {
    return make_topology(topology, {.shape = shape, .seed = 4});
  };
  return {on("ring", even_hosts(5, 1)),
          lazy(on("star", even_hosts(4, 1))),
          on("aer", even_hosts(4, 2)),
          on("one_peer_exponential", even_hosts(3, 2)),
          on("random", even_hosts(6, 1)),
          on("random_directed", even_hosts(6, 1)),
          with_local_steps(with_global_average(on("ring", even_hosts(4, 1)), 2), 2)};
}

bool fits(const Pattern& pattern, const Case& c) {
  return unmet_condition(pattern, c.options.optimizer, c.options.schedule, c.options.groups) ==
         Condition::none;
}

TEST(LabAndEngine, GoTheSameWay) {
  int compared = 0;
  for (const Pattern& pattern : patterns()) {
    for (const char* optimizer : {"sgd", "momentum", "adamw", "accum_adam"}) {
      for (const Schedule& schedule : schedules()) {
        const Case c = case_of(std::string(pattern.name), optimizer, schedule);
        if (!fits(pattern, c)) continue;
        const Gradient gradient = quadratics(11);
        EXPECT_LT(largest_difference(lab_run(c, gradient), engine_run<double>(c, gradient)), 1e-12)
            << pattern.name << ", " << optimizer << ", " << schedule.name;
        ++compared;
      }
    }
  }
  EXPECT_GT(compared, 100);
}

}  // namespace
}  // namespace gossamer
