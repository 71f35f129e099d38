// Recipes and run.toml.

#include "gossamer/base/fuzz.h"
#include "gossamer/recipe/file.h"

namespace gossamer {

bool fuzz_recipe(std::span<const std::byte> bytes) {
  return takes([&] {
    Recipe recipe;
    read_recipe_text(FuzzBytes(bytes).text(), "r.toml", recipe);
    if (recipe.run.checkpoint_every == kUsualCheckpoints)
      recipe.run.checkpoint_every = 0;  // as the command does
    if (recipe.model.dropout == kUsualDropout) recipe.model.dropout = 0;
    check_recipe(recipe);
    const std::string text = to_toml(recipe);
    Recipe again;
    read_recipe_text(text, "again.toml", again);
    fuzz_check(to_toml(again) == text, "another recipe after reading");
    consensus_factor(recipe.algorithm, lr_factor(recipe.optimizer, recipe.run, 1));
    const std::string& topology = recipe.algorithm.topology;
    if (topology == kAutoTopology || topology.ends_with(".json")) return;
    const MethodSpec method = method_of(recipe.algorithm, recipe.run.seed);
    AlgorithmSection set = recipe.algorithm;
    set_method(method, set);
    fuzz_check(method_of(set, recipe.run.seed) == method, "another method after it was set");
    const HostShape shape = host_shape_of(recipe.cluster);
    if (shape.workers() <= 16) takes([&] { make_schedule(method.schedule, shape); });
  });
}

}  // namespace gossamer
