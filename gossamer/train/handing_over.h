#pragma once
/// What a worker that comes back is given: a checkpoint of one worker, which travels.

#include <cstdint>
#include <string>

#include "gossamer/train/checkpoint.h"

namespace gossamer {

/// `began`: the step with which the run, or what resumed it, began. Between two steps.
std::string packed_state(const TrainedRun& run, Trainer& trainer, std::int64_t began);

/// Fills the trainer, whose engine has yet to start; `began` as it was told. Throws IoError or
/// std::invalid_argument for what does not fit.
std::int64_t take_state(const TrainedRun& run, Trainer& trainer, const std::string& state);

}  // namespace gossamer
