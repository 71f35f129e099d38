#pragma once
/// Flags from the table of a recipe's fields.

#include <string>
#include <vector>

#include "gossamer/recipe/recipe.h"

namespace CLI {
class App;
}

namespace gossamer {

/// One flag per field, named after its key, in help groups named after its section.
void add_train_flags(CLI::App& app, Recipe& recipe);

/// The value of `--name VALUE` or `--name=VALUE` among the arguments, before they are parsed; empty
/// if absent.
std::string peek_flag(const std::vector<std::string>& arguments, const std::string& name);

/// All values of the flag, in their order.
std::vector<std::string> values_of_flag(const std::vector<std::string>& arguments,
                                        const std::string& name);

}  // namespace gossamer
