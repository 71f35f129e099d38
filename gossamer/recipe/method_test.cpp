#include <gtest/gtest.h>

#include "gossamer/recipe/recipe.h"

namespace gossamer {
namespace {

TEST(RecipeMethod, AMethodThatIsSetComesBack) {
  for (const char* text : {"aer:bf16", "atc@ring:rounds=2:local=4", "one_peer_ring:skip=2",
                           "slowmo@complete:local=4:outer_every=2", "allreduce",
                           "gradient_gossip@aer:step:group=direct:stagger=no"}) {
    const MethodSpec method = parse_method(text);
    AlgorithmSection algorithm{.codec = Codec::int8, .local_steps = 7, .lazy = true};
    set_method(method, algorithm);
    EXPECT_EQ(name_of(method_of(algorithm, method.schedule.seed)),
              name_of(method) + (method.pattern == "allreduce" ? ":group=hierarchical" : ""))
        << text;
  }
}

/// noise_share is a number of [optimizer].
TEST(RecipeMethod, EveryOptionOfAPatternComesBack) {
  for (const Pattern& pattern : patterns()) {
    for (const std::string_view option : pattern.options) {
      if (option == "noise_share") continue;
      MethodSpec method{.pattern = std::string(pattern.name)};
      method.options = {{std::string(option), option == "outer_every" ? 4 : 0.625}};
      AlgorithmSection algorithm;
      set_method(method, algorithm);
      EXPECT_EQ(method_of(algorithm, 0).options, method.options) << pattern.name << " " << option;
    }
  }
}

TEST(RecipeMethod, DdpIsTrainedAsAllreduceWithARing) {
  AlgorithmSection algorithm;
  set_method(parse_method("ddp"), algorithm);
  EXPECT_EQ(algorithm.pattern->name, "allreduce");
  EXPECT_EQ(method_of(algorithm, 1).group_method, GroupMethod::ring);
}

TEST(RecipeMethod, NumbersOfTheAlgorithmReachTheOptimizer) {
  Recipe recipe;
  recipe.optimizer.hyper.lr = 0.5;
  recipe.algorithm.outer_every = 3;
  recipe.algorithm.consensus = 0.25;
  const Hyper hyper = hyper_of(recipe.optimizer, recipe.algorithm);
  EXPECT_EQ(hyper.lr, 0.5);
  EXPECT_EQ(hyper.outer_every, 3);
  EXPECT_EQ(hyper.consensus, 0.25);
}

}  // namespace
}  // namespace gossamer
