#pragma once
/// Images as a task: batches in shuffled epochs, augmented where that is asked for.

#include "gossamer/torch/data/task.h"

namespace gossamer {

/// See TaskArgs for what it reads.
Task open_images(const TaskArgs& args);

}  // namespace gossamer
