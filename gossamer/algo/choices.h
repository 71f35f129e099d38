#pragma once
/// Which rows of the tables users may choose: some stand in for a part that the caller does.

#include <string_view>
#include <vector>

namespace gossamer {

/// Names of the optimizers but for "none", which leaves the step to the caller's own optimizer.
std::vector<std::string_view> optimizer_choices();

/// Throws std::invalid_argument for an unknown optimizer, and for "none": nothing would be trained.
void check_optimizer_choice(std::string_view name);

}  // namespace gossamer
