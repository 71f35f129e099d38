#include <cmath>
#include <span>
#include <utility>

#include "gossamer/base/errors.h"
#include "gossamer/base/json.h"
#include "gossamer/base/timeout.h"
#include "gossamer/base/units.h"
#include "gossamer/recipe/fields.h"

namespace gossamer {
namespace {

void require(bool valid, std::string_view key, std::string_view range, const std::string& got,
             const std::string& remedy = "") {
  if (valid) return;
  fail_argument({.place = "train",
                 .what = std::string(key) + " must be " + std::string(range),
                 .got = got,
                 .remedy = remedy});
}

bool is_utf8(const std::string& text) {
  try {
    (void)Json(text).dump();
    return true;
  } catch (const Json::exception&) {
    return false;
  }
}

/// run.toml and the manifests of checkpoints hold all texts.
void check_text(std::string_view key, const std::string& text) {
  if (is_utf8(text)) return;
  const std::string shown = Json(text).dump(-1, ' ', false, Json::error_handler_t::replace);
  require(false, key, "UTF-8, which the files of a run are", shown,
          "rename it, or give another name that leads there (ln -s)");
}

void check_texts(const Recipe& recipe) {
  Recipe copy = recipe;
  for (const RecipeField& field : recipe_fields(copy)) {
    if (const auto* const* text = std::get_if<std::string*>(&field.target)) {
      check_text(field.key, **text);
    }
    if (const auto* const* list = std::get_if<std::vector<std::string>*>(&field.target)) {
      for (const std::string& text : **list) check_text(field.key, text);
    }
  }
}

void check_counts(const Recipe& r) {
  const std::pair<std::string_view, std::int64_t> from_0[] = {
      {"vocabulary", r.data.vocabulary},
      {"pieces_per_worker", r.data.pieces_per_worker},
      {"image_size", r.data.image_size},
      {"shift", r.data.shift},
      {"width", r.model.size.width},
      {"layers", r.model.size.layers},
      {"heads", r.model.size.heads},
      {"hidden", r.model.size.hidden},
      {"staleness", r.algorithm.staleness},
      {"global_average", r.algorithm.global_average},
      {"adaptive_average", r.algorithm.adaptive_average},
      {"local_steps", r.algorithm.local_steps},
      {"rounds_per_step", r.algorithm.rounds_per_step},
      {"warmup", r.optimizer.warmup},
      {"evaluate_every", r.run.evaluate_every},
      {"checkpoint_every", r.run.checkpoint_every},
      {"trace_steps", r.run.trace_steps},
      {"read_ahead", r.run.read_ahead}};
  for (const auto& [key, value] : from_0) {
    require(value >= 0, key, "not negative", std::to_string(value));
  }
  const std::pair<std::string_view, std::int64_t> from_1[] = {
      {"max_bytes", r.data.max_bytes},
      {"context", r.data.context},
      {"validation_samples", r.data.validation_samples},
      {"degree", r.algorithm.degree},
      {"steps", r.run.steps},
      {"buckets", r.algorithm.buckets},
      {"keep", r.run.keep},
      {"kernel_threads", r.run.kernel_threads}};
  for (const auto& [key, value] : from_1) {
    require(value >= 1, key, "at least 1", std::to_string(value));
  }
}

void check_shares(const Recipe& r) {
  const std::pair<std::string_view, double> from_0[] = {
      {"gamma", r.cluster.gamma},         {"compute_ms", r.cluster.compute_ms},
      {"grace_s", r.run.grace_s},         {"clip_norm", r.algorithm.clip_norm},
      {"final_lr", r.optimizer.final_lr}, {"consensus_power", r.algorithm.consensus_power}};
  for (const auto& [key, value] : from_0) {
    require(std::isfinite(value) && value >= 0, key, "finite and not negative",
            std::to_string(value));
  }
  const double fraction = r.data.validation_fraction;
  require(fraction > 0 && fraction <= 0.5, "validation_fraction", "more than 0 and at most 0.5",
          std::to_string(fraction));
  const double mask = r.data.mask_share;
  require(mask > 0 && mask < 1, "mask_share", "more than 0 and less than 1", std::to_string(mask));
  const double smoothing = r.optimizer.label_smoothing;
  require(smoothing >= 0 && smoothing < 1, "label_smoothing", "at least 0 and less than 1",
          std::to_string(smoothing));
  const double dropout = r.model.dropout;
  require(dropout == kUsualDropout || (dropout >= 0 && dropout < 1), "dropout",
          "at least 0 and less than 1, or -1 for the model's usual", std::to_string(dropout));
}

void check_links(const ClusterSection& c) {
  if (!c.link_rate.empty()) parse_rate(c.link_rate, "link_rate");
  parse_duration(c.link_latency, "link_latency");
  parse_rate(c.inside_rate, "inside_rate");
  require(c.gamma == 0 || c.link_rate.empty(), "link_rate", "absent where gamma is given",
          c.link_rate);
}

/// The topology, the pattern and the numbers of both go together.
void check_algorithm(const Recipe& recipe) {
  const AlgorithmSection& algorithm = recipe.algorithm;
  const Hyper hyper = hyper_of(recipe.optimizer, algorithm);
  check_hyper(hyper);
  if (algorithm.topology != kAutoTopology) {
    const MethodSpec method = method_of(algorithm, recipe.run.seed);
    check_pattern(*algorithm.pattern, recipe.optimizer.optimizer->name,
                  make_schedule(method.schedule, host_shape_of(recipe.cluster)), {&hyper, 1});
  }
  require(algorithm.link_rates.empty() || algorithm.topology == "fitted", "link_rates",
          "absent but for the topology fitted", "topology '" + algorithm.topology + "'");
  method_of(algorithm, recipe.run.seed);
}

/// What a device does not serve; see Note [Training on a device].
void check_device(const Recipe& recipe) {
  if (recipe.run.device == "cpu") return;
  const Pattern& pattern = *recipe.algorithm.pattern;
  require(pattern.own_step || pattern.averages_first, "device",
          "cpu for a pattern that works on the optimizer's vectors or step; cwa, atc, "
          "gradient_gossip, exact_diffusion, extra and allreduce go with others",
          recipe.run.device + " and pattern " + std::string(pattern.name));
  const MethodSpec method = method_of(recipe.algorithm, recipe.run.seed);
  require(pattern.averages_first || update_of(method) == UpdateAt::step, "device",
          "cpu where buckets step in the backward (update = \"backward\")", recipe.run.device);
  const bool gossips_first = pattern.averages_first && !averages_gradients(pattern);
  require(!gossips_first || method.schedule.adaptive_average == 0, "device",
          "cpu where the rounds of gradients follow the loss (adaptive_average)",
          recipe.run.device);
  require(hyper_of(recipe.optimizer, recipe.algorithm).noise_share == 1, "device",
          "cpu where noise_share is given", recipe.run.device);
}

}  // namespace

void check_recipe(const Recipe& recipe) {
  check_texts(recipe);
  check_counts(recipe);
  check_shares(recipe);
  check_timeout(recipe.run.timeout_s, "train");
  require(recipe.run.suspect_s >= kLeastSuspected.count(), "suspect_s", "3 or more seconds",
          std::to_string(recipe.run.suspect_s));
  const int workers = host_shape_of(recipe.cluster).workers();
  check_algorithm(recipe);
  check_device(recipe);
  check_links(recipe.cluster);
  require(recipe.data.global_batch >= workers, "global_batch",
          "at least the number of workers (" + std::to_string(workers) + ")",
          std::to_string(recipe.data.global_batch));
}

}  // namespace gossamer
