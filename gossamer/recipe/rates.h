#pragma once
/// The rates of a run by step: how fast it learns, and how much of a mix it takes.

#include <cstdint>
#include <string_view>
#include <vector>

namespace gossamer {

struct AlgorithmSection;
struct OptimizerSection;
struct RunSection;

/// What the learning rate does after the warm-up.
enum class LrSchedule {
  constant,
  cosine,        ///< it falls to final_lr until the run's last step
  inverse_sqrt,  ///< it falls with the root of the steps
};

std::string_view name_of(LrSchedule schedule);

/// Throws std::invalid_argument that lists the names.
LrSchedule find_lr_schedule(std::string_view name);

std::vector<std::string_view> lr_schedule_names();

/// The learning rate of step t ≥ 1 as a factor of lr.
double lr_factor(const OptimizerSection& optimizer, const RunSection& run, std::int64_t t);

/// Hyper::consensus where the learning rate is `lr_factor` of its peak.
double consensus_factor(const AlgorithmSection& algorithm, double lr_factor);

}  // namespace gossamer
