// Recipes and run.toml.

#include "gossamer/base/fuzz.h"
#include "gossamer/recipe/spec.h"

namespace gossamer {

bool fuzz_recipe(std::span<const std::byte> bytes) {
  return takes([&] {
    TrainSpec spec;
    read_recipe_text(FuzzBytes(bytes).text(), "r.toml", spec);
    if (spec.checkpoint_every == kUsualCheckpoints)
      spec.checkpoint_every = 0;  // as the command does
    if (spec.dropout == kUsualDropout) spec.dropout = 0;
    check_train_spec(spec);
    const std::string text = to_toml(spec);
    TrainSpec again;
    read_recipe_text(text, "again.toml", again);
    fuzz_check(to_toml(again) == text, "another recipe after reading");
    lr_factor(spec, 1);
    consensus_factor(spec, spec.steps);
    if (spec.topology == kAutoTopology || spec.topology.ends_with(".json")) return;
    const MethodSpec method = method_of(spec);
    TrainSpec set = spec;
    set_method(method, set);
    fuzz_check(method_of(set) == method, "another method after it was set");
    if (host_shape_of(spec).workers() <= 16) takes([&] { schedule_of(spec); });
  });
}

}  // namespace gossamer
