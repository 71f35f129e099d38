#pragma once
/// Translation as a task: parallel text, its vocabulary, and batches by step and worker.

#include "gossamer/torch/data/task.h"

namespace gossamer {

/// See TaskArgs for what it reads.
Task open_translation(const TaskArgs& args);

}  // namespace gossamer
