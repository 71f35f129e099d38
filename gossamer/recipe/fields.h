#pragma once
/// The fields of a recipe as one table, which serves the file, the flags, run.toml and manifests.

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "gossamer/base/json.h"
#include "gossamer/recipe/recipe.h"
#include "gossamer/recipe/words.h"

namespace gossamer {

/// A choice somewhere in a recipe, read and set by its word.
class ChoiceRef {
 public:
  template <class T>
  explicit ChoiceRef(T* choice)
      : choice_(choice),
        word_([](const void* from) { return word_of(*static_cast<const T*>(from)); }),
        set_([](const std::string& word, void* to) { read_word(word, *static_cast<T*>(to)); }) {}

  std::string word() const { return word_(choice_); }
  /// Throws std::invalid_argument that lists the words.
  void set(const std::string& word) const { set_(word, choice_); }

 private:
  void* choice_;
  std::string (*word_)(const void* from);
  void (*set_)(const std::string& word, void* to);
};

/// A field by section and key; the key is the same word in TOML and, with dashes, as a flag.
struct RecipeField {
  using Target = std::variant<std::string*, bool*, int*, std::int64_t*, std::uint64_t*, double*,
                              std::vector<std::string>*, ChoiceRef>;
  std::string_view section;
  std::string_view key;
  std::string help;
  Target target;
};

/// The table, pointing into `recipe`.
std::vector<RecipeField> recipe_fields(Recipe& recipe);

/// Whether the field says where data lie. What they contain is Task::content.
bool is_data_path(std::string_view key);

/// The field's value.
Json to_json(const RecipeField& field);

}  // namespace gossamer
