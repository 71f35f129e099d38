// Methods in words: one value, whichever door it came through.

#include "gossamer/exchange/method.h"

#include <gtest/gtest.h>

#include <set>
#include <stdexcept>

#include "gossamer/base/rng.h"
#include "gossamer/graph/topology.h"

namespace gossamer {
namespace {

template <class T>
T one_of(Rng& rng, std::initializer_list<T> values) {
  return values.begin()[rng.below(values.size())];
}

/// Some of the fields, whether they go together or not.
MethodSpec any_method(Rng& rng) {
  MethodSpec method;
  const PatternFacts& pattern = pattern_facts()[rng.below(pattern_facts().size())];
  method.pattern = pattern.name;
  for (const std::string_view option : pattern.options) {
    if (rng.below(2) == 0) continue;
    method.options.push_back({std::string(option), option == "outer_every" ? 4 : 0.625});
  }
  std::ranges::sort(method.options, {}, &PatternOption::name);
  method.codec = kAllCodecs[rng.below(kAllCodecs.size())];
  method.update = one_of(rng, {std::optional<UpdateAt>(), std::optional(UpdateAt::step),
                               std::optional(UpdateAt::backward)});
  method.group_method =
      one_of(rng, {std::optional<GroupMethod>(), std::optional(GroupMethod::hierarchical),
                   std::optional(GroupMethod::direct), std::optional(GroupMethod::ring)});
  if (pattern.rounds == Rounds::complete) return method;
  method.schedule = {.topology = std::string(topologies()[rng.below(topologies().size())].name),
                     .degree = one_of(rng, {1, 3}),
                     .lazy = rng.below(2) == 0,
                     .rounds_per_step = one_of(rng, {1, 2}),
                     .local_steps = one_of(rng, {1, 4}),
                     .global_average = one_of(rng, {0, 8}),
                     .adaptive_average = one_of(rng, {0, 16})};
  method.stagger = rng.below(2) == 0;
  method.late = one_of(rng, {Late::wait, Late::skip});
  if (method.late == Late::skip) method.staleness = one_of<std::int64_t>(rng, {0, 1, 5});
  return method;
}

TEST(MethodWords, EveryValueReadsBack) {
  for (int seed = 0; seed < 2000; ++seed) {
    Rng rng(static_cast<std::uint64_t>(seed), 0);
    const MethodSpec method = any_method(rng);
    EXPECT_TRUE(parse_method(name_of(method)) == method) << name_of(method);
  }
}

/// A field that no word reaches would be lost between two doors.
TEST(MethodWords, EveryFieldIsReached) {
  std::set<std::string_view> seen;
  for (int seed = 0; seed < 500; ++seed) {
    Rng rng(static_cast<std::uint64_t>(seed), 1);
    const MethodSpec method = any_method(rng);
    for (const MethodField& field : method_fields()) {
      if (field.get(method).empty()) continue;
      seen.insert(field.key);
      MethodSpec copy{.schedule = {.topology = method.schedule.topology},
                      .pattern = method.pattern};
      field.set(copy, field.get(method));
      EXPECT_EQ(field.get(copy), field.get(method)) << field.key;
    }
  }
  for (const MethodField& field : method_fields()) {
    if (field.key == "late") continue;  // said with staleness
    EXPECT_TRUE(seen.contains(field.key)) << field.key;
  }
}

TEST(MethodWords, TheWordsOfADoorAreItsOwn) {
  std::string lr;
  const auto optimizer = [&](const std::string& word, const std::string& value) {
    if (word == "lr") lr = value;
    return word == "lr";
  };
  EXPECT_EQ(name_of(parse_method("atc@ring:lr=0.1:lazy", optimizer)), "atc@ring:lazy");
  EXPECT_EQ(lr, "0.1");
  EXPECT_THROW(parse_method("atc@ring:lr=0.1"), std::invalid_argument);
  EXPECT_THROW(parse_method("atc@ring:rate=0.1", optimizer), std::invalid_argument);
}

TEST(Method, WhatDoesNotGoTogetherIsRefused) {
  const HostShape shape = even_hosts(4, 2);
  for (const char* text :
       {"cwa@random_directed", "exact_diffusion@ring", "exact_diffusion@aer", "slowmo@ring",
        "slowmo@ring:outer_every=4", "atc@ring:skip", "gradient_gossip@ring:skip", "random:skip",
        "allreduce:bf16:group=ring", "push_sum@random_directed:int8", "cwa@ring:outer_every=4",
        "cwa@ring:adaptive=4:backward", "hypercube:degree=0"}) {
    EXPECT_THROW(check_method(parse_method(text), shape), std::invalid_argument) << text;
  }
  for (const char* text : {"push_sum@random_directed:degree=2", "exact_diffusion@ring:lazy",
                           "noloco@ring:outer_every=4", "slowmo@ring:average=4:outer_every=4",
                           "ring:skip=3", "allreduce:int8", "ddp", "ddp:bf16",
                           "dsgd_ac@ring:consensus=0.5", "gradient_gossip@aer:int8:rounds=2"}) {
    EXPECT_NO_THROW(check_method(parse_method(text), shape)) << text;
  }
}

// Its ring sums what the hook has made of the gradients.
TEST(Method, DdpMayHaveAHookThatCompresses) {
  EXPECT_EQ(name_of(parse_method("ddp:bf16")), "ddp:bf16");
  EXPECT_EQ(parse_method("ddp:fp16"), parse_method("ddp:bf16"));
  EXPECT_EQ(plan_options(parse_method("ddp:bf16")).codec, Codec::fp32);
  EXPECT_THROW(parse_method("ddp:int8"), std::invalid_argument);
  EXPECT_THROW(parse_method("allreduce:fp16"), std::invalid_argument);
}

TEST(Method, SaysOnceHowItsRoundsAreCompiled) {
  EXPECT_TRUE(plan_options(parse_method("aer:skip")).separate_neighbours);
  EXPECT_TRUE(plan_options(parse_method("allreduce")).finished_averages);
  EXPECT_EQ(plan_options(parse_method("ddp")).group_method, GroupMethod::ring);
  EXPECT_EQ(plan_options(parse_method("aer:int8")).codec, Codec::int8);
  EXPECT_EQ(update_of(parse_method("allreduce")), UpdateAt::backward);
  EXPECT_EQ(update_of(parse_method("gradient_gossip@aer:step")), UpdateAt::step);
}

}  // namespace
}  // namespace gossamer
