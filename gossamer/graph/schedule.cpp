#include "gossamer/graph/schedule.h"

#include <memory>
#include <utility>

#include "gossamer/base/errors.h"

namespace gossamer {

Schedule periodic_schedule(std::string name, HostShape shape, std::vector<Round> rounds,
                           Stochasticity stochasticity) {
  const int workers = shape.workers();
  if (rounds.empty()) fail_argument({.place = "graph", .what = "a schedule needs a round"});
  for (const Round& round : rounds) {
    if (round.workers != workers) {
      fail_argument({.place = "graph",
                     .what = "a round must be for all " + std::to_string(workers) + " workers",
                     .got = std::to_string(round.workers)});
    }
    check_stochastic(round, stochasticity);
  }
  const auto period = static_cast<int>(rounds.size());
  const auto shared = std::make_shared<const std::vector<Round>>(std::move(rounds));
  return {.name = std::move(name),
          .shape = std::move(shape),
          .period = period,
          .stochasticity = stochasticity,
          .round = [shared](std::int64_t t, std::span<const AgreedLoss>) {
            return (*shared)[static_cast<std::size_t>(t) % shared->size()];
          }};
}

Schedule alone_schedule(const HostShape& shape) {
  return periodic_schedule("alone", shape, {identity_round(shape.workers())});
}

bool is_alone(const Schedule& schedule) {
  if (schedule.period != 1 || schedule.loss_driven) return false;
  const Round round = round_at(schedule, 0, {});
  for (int worker = 0; worker < round.workers; ++worker) {
    if (row_of(round, worker) != std::vector<Entry>{{worker, 1}}) return false;
  }
  return true;
}

Schedule complete_schedule(const HostShape& shape) {
  return periodic_schedule("complete", shape, {complete_round(shape.workers())});
}

Round round_at(const Schedule& schedule, std::int64_t t, std::span<const AgreedLoss> losses) {
  GOSSAMER_ASSERT(t >= 0);
  return schedule.round(schedule.period > 0 ? t % schedule.period : t, losses);
}

}  // namespace gossamer
