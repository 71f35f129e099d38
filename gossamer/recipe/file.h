#pragma once
/// Recipes and run.toml: the fields of a recipe as a file.

#include <string>
#include <string_view>

#include "gossamer/recipe/recipe.h"

namespace gossamer {

/// Overwrites the fields that the file has. Unknown sections and keys, wrong types and unreadable
/// files throw, naming file, line, and the nearest valid word; unknown words of choices throw as
/// well.
void read_recipe(const std::string& path, Recipe& recipe);
/// The same of a text; `name` stands for the file in messages.
void read_recipe_text(std::string_view text, std::string_view name, Recipe& recipe);

/// The whole recipe as TOML that read_recipe() takes.
std::string to_toml(const Recipe& recipe);

}  // namespace gossamer
