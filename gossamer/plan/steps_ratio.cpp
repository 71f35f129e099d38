#include "gossamer/plan/steps_ratio.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace gossamer {
namespace {

constexpr double kDisagreement = 0.22;
constexpr double kOwnNormalisation = 0.15;

void add_codec(Codec codec, StepsRatio& ratio) {
  switch (codec) {
    case Codec::fp32:
      return;
    case Codec::bf16:
      ratio.parts.push_back({0.005, "payloads of bf16"});
      return;
    case Codec::int8:
      ratio.parts.push_back({0.01, "payloads of int8"});
      return;
  }
}

double disagreement(int workers, double rho, const Target& target) {
  if (rho >= 1) return std::numeric_limits<double>::infinity();
  const double distance = rho / (1 - rho);
  return kDisagreement * workers * distance * distance / static_cast<double>(target.steps);
}

/// How much of a worker's gradient is noise: 1 where nothing is known.
double noise_share(const Target& target, int workers) {
  if (target.noise_scale == 0 || target.global_batch == 0) return 1;
  const double own_batch = target.global_batch / workers;
  return 1 - 1 / (1 + target.noise_scale / own_batch);
}

/// How much of the price of one's own noise is left where gradients are averaged.
double own_share(const MixingRate& mixing) {
  const double all = 1.0 / mixing.workers;
  return std::max(0.0, (1 / mixing.averaged - all) / (1 - all));
}

bool normalises(const Target& target) { return target.optimizer.find("adam") != std::string::npos; }

}  // namespace

double averaged_workers(const Schedule& schedule) {
  constexpr int kLookedAt = 16;
  const int rounds = std::clamp(schedule.period, 1, kLookedAt);
  double sum = 0;
  for (int t = 0; t < rounds; ++t) {
    const Round round = round_at(schedule, t);
    for (int worker = 0; worker < round.workers; ++worker) {
      double squares = 0;
      for (const Entry& entry : row_of(round, worker)) squares += entry.weight * entry.weight;
      sum += 1 / squares;
    }
  }
  return sum / (rounds * schedule.shape.workers());
}

bool is_measured(const MethodSpec& method) {
  return averages_gradients(method) || method.pattern == "cwa" ||
         method.pattern == "gradient_gossip";
}

StepsRatio steps_ratio(const MethodSpec& candidate, const MixingRate& mixing,
                       const Target& target) {
  StepsRatio ratio;
  const int workers = mixing.workers;
  const double full = disagreement(workers, mixing.rho, target);
  const double thin = disagreement(workers, 1 - mixing.taken * (1 - mixing.rho), target);
  if (averages_gradients(candidate) || workers == 1) {
    // The mean gradient is what all-reduce is.
  } else if (target.steps_ratio > 0) {
    ratio.parts.push_back({target.steps_ratio - 1, "steps_ratio of the workload"});
  } else {
    ratio.parts.push_back({full, "disagreement of the workers"});
    if (normalises(target)) {
      ratio.parts.push_back({kOwnNormalisation * noise_share(target, workers) * own_share(mixing),
                             "every worker normalises its own gradient"});
    }
  }
  if (mixing.taken < 1) ratio.parts.push_back({thin - full, "payloads that come too late"});
  add_codec(candidate.codec, ratio);
  for (const StepsPart& part : ratio.parts) ratio.ratio += part.more;
  const bool is_known = is_measured(candidate) || workers == 1 || target.steps_ratio > 0;
  if (!is_known) ratio = {.ratio = std::numeric_limits<double>::quiet_NaN(), .parts = {}};
  return ratio;
}

std::vector<std::string> limits_of_ratio(const MethodSpec& candidate, const Target& target) {
  std::vector<std::string> limits;
  if (averages_gradients(candidate) || target.steps_ratio > 0) return limits;
  if (normalises(target)) {
    limits.push_back(
        "The price of Adam's own noise is 0.15 for every model and number of workers: recorded "
        "were "
        "0.37 (8 workers) to 0.77 in small transformers. Nothing is known of other models.");
  } else {
    limits.push_back(
        "With " + target.optimizer +
        " only the disagreement is counted, by published errors of momentum SGD on 32 workers. No "
        "ratio of steps was measured here: after as many steps, cwa at the learning rate of DDP "
        "was "
        "10.5 % behind in the loss of a small ResNet.");
  }
  const ScheduleSpec& schedule = candidate.schedule;
  if (schedule.local_steps > 1 || schedule.global_average > 0) {
    limits.push_back(
        "Nobody has measured how many more steps local steps or global averages need: the estimate "
        "counts their disagreement alone.");
  }
  return limits;
}

}  // namespace gossamer
