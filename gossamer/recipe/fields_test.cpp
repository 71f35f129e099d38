#include "gossamer/recipe/fields.h"

#include <gtest/gtest.h>

#include <set>
#include <stdexcept>
#include <string>

#include "gossamer/algo/choices.h"
#include "gossamer/base/test_errors.h"

namespace gossamer {
namespace {

const RecipeField& field(const std::vector<RecipeField>& fields, std::string_view key) {
  const auto found = std::ranges::find(fields, key, &RecipeField::key);
  if (found == fields.end()) throw std::logic_error("no field " + std::string(key));
  return *found;
}

TEST(Fields, AKeyIsThereOnceOverAllSections) {  // it is a flag
  Recipe recipe;
  std::set<std::string_view> keys;
  for (const RecipeField& each : recipe_fields(recipe)) {
    EXPECT_TRUE(keys.insert(each.key).second) << each.key;
  }
}

TEST(Fields, HelpNamesEveryRowOfATable) {
  Recipe recipe;
  const std::vector<RecipeField> fields = recipe_fields(recipe);
  const auto names = [&](std::string_view key, std::string_view name) {
    EXPECT_NE(field(fields, key).help.find(name), std::string::npos) << key << ": " << name;
  };
  for (const TaskFacts& task : kTasks) names("task", task.name);
  for (const ModelFacts& model : model_facts()) names("model", model.name);
  for (const Pattern& pattern : patterns()) names("pattern", pattern.name);
  for (const CodecFacts& codec : kCodecs) names("codec", codec.name);
  for (const std::string_view optimizer : optimizer_choices()) names("optimizer", optimizer);
  for (const Pattern& pattern : patterns()) {
    for (const std::string_view option : pattern.options) {
      if (option != "noise_share") names(option, pattern.name);  // a number of the optimizer
    }
  }
}

TEST(Fields, AChoiceTakesItsWordAndRefusesOthersWithThoseThatItHas) {
  Recipe recipe;
  int choices = 0;
  for (const RecipeField& each : recipe_fields(recipe)) {
    const auto* choice = std::get_if<ChoiceRef>(&each.target);
    if (choice == nullptr) continue;
    ++choices;
    const std::string word = choice->word();
    choice->set(word);
    EXPECT_EQ(choice->word(), word) << each.key;
    const std::string said = message_of<std::invalid_argument>([&] { choice->set("nonesuch"); });
    EXPECT_NE(said.find("valid: "), std::string::npos) << each.key << ": " << said;
    EXPECT_EQ(choice->word(), word) << each.key;
  }
  EXPECT_EQ(choices, 11);
}

TEST(Fields, AnOptimizerWithoutAStepIsRefused) {
  Recipe recipe;
  const std::vector<RecipeField> fields = recipe_fields(recipe);
  EXPECT_THROW(std::get<ChoiceRef>(field(fields, "optimizer").target).set("none"),
               std::invalid_argument);
}

}  // namespace
}  // namespace gossamer
