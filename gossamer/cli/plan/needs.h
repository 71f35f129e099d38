#pragma once
/// The table of `plan` that says which method is enough on which links.

#include <string>
#include <vector>

#include "gossamer/base/json.h"
#include "gossamer/plan/needs.h"

namespace gossamer {

/// Empty where there are none. `knows_gpu`: the compute time follows from tokens on a GPU.
std::string needs_table(const std::vector<Need>& needs, bool knows_gpu);

/// A rate that nothing is enough of is null.
Json needs_json(const std::vector<Need>& needs);

}  // namespace gossamer
