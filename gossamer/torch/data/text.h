#pragma once
/// Text as a task: windows of tokens, whose next or hidden ones are asked for.

#include "gossamer/torch/data/task.h"

namespace gossamer {

/// See TaskArgs for what it reads.
Task open_text(const TaskArgs& args);

}  // namespace gossamer
