#include "gossamer/cli/train_flags.h"

#include <CLI/CLI.hpp>
#include <algorithm>

#include "gossamer/recipe/fields.h"

namespace gossamer {
namespace {

std::string flag_of(std::string_view key) {
  std::string flag = "--" + std::string(key);
  std::ranges::replace(flag, '_', '-');
  return flag;
}

}  // namespace

void add_train_flags(CLI::App& app, Recipe& recipe) {
  for (const RecipeField& field : recipe_fields(recipe)) {
    const std::string flag = flag_of(field.key);
    const auto add = [&](auto target) -> CLI::Option* {
      if constexpr (std::is_same_v<decltype(target), ChoiceRef>) {
        return app
            .add_option_function<std::string>(
                flag, [target](const std::string& word) { target.set(word); }, field.help)
            ->default_str(target.word())
            ->take_last();
      } else if constexpr (std::is_same_v<decltype(target), bool*>) {
        return app.add_flag(flag + ",!--no-" + flag.substr(2), *target, field.help);
      } else if constexpr (std::is_same_v<decltype(target), std::vector<std::string>*>) {
        return app.add_option(flag, *target, field.help)->delimiter(',');
      } else {
        return app.add_option(flag, *target, field.help)->capture_default_str()->take_last();
      }
    };
    std::visit(add, field.target)->group("[" + std::string(field.section) + "]");
  }
}

std::vector<std::string> values_of_flag(const std::vector<std::string>& arguments,
                                        const std::string& name) {
  std::vector<std::string> values;
  for (std::size_t k = 0; k < arguments.size(); ++k) {
    if (arguments[k] == name && k + 1 < arguments.size()) values.push_back(arguments[k + 1]);
    if (arguments[k].starts_with(name + "=")) {
      values.push_back(arguments[k].substr(name.size() + 1));
    }
  }
  return values;
}

std::string peek_flag(const std::vector<std::string>& arguments, const std::string& name) {
  const std::vector<std::string> values = values_of_flag(arguments, name);
  return values.empty() ? "" : values.back();
}

}  // namespace gossamer
