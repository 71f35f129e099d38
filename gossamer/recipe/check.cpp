#include <cmath>
#include <span>
#include <utility>

#include "gossamer/algo/choices.h"
#include "gossamer/algo/pattern.h"
#include "gossamer/base/errors.h"
#include "gossamer/base/json.h"
#include "gossamer/base/timeout.h"
#include "gossamer/base/units.h"
#include "gossamer/recipe/spec.h"

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

void check_texts(const TrainSpec& spec) {
  TrainSpec copy = spec;
  for (const TrainField& field : train_fields(copy)) {
    if (const auto* const* text = std::get_if<std::string*>(&field.target)) {
      check_text(field.key, **text);
    }
    if (const auto* const* list = std::get_if<std::vector<std::string>*>(&field.target)) {
      for (const std::string& text : **list) check_text(field.key, text);
    }
  }
}

void check_counts(const TrainSpec& s) {
  const std::pair<std::string_view, std::int64_t> from_0[] = {
      {"vocabulary", s.vocabulary},
      {"pieces_per_worker", s.pieces_per_worker},
      {"shift", s.shift},
      {"width", s.width},
      {"layers", s.layers},
      {"heads", s.heads},
      {"hidden", s.hidden},
      {"staleness", s.staleness},
      {"global_average", s.global_average},
      {"adaptive_average", s.adaptive_average},
      {"local_steps", s.local_steps},
      {"rounds_per_step", s.rounds_per_step},
      {"warmup", s.warmup},
      {"evaluate_every", s.evaluate_every},
      {"checkpoint_every", s.checkpoint_every},
      {"trace_steps", s.trace_steps}};
  for (const auto& [key, value] : from_0) {
    require(value >= 0, key, "not negative", std::to_string(value));
  }
  const std::pair<std::string_view, std::int64_t> from_1[] = {
      {"max_bytes", s.max_bytes},
      {"context", s.context},
      {"validation_samples", s.validation_samples},
      {"degree", s.degree},
      {"steps", s.steps},
      {"buckets", s.buckets},
      {"keep", s.keep},
      {"kernel_threads", s.kernel_threads}};
  for (const auto& [key, value] : from_1) {
    require(value >= 1, key, "at least 1", std::to_string(value));
  }
}

void check_shares(const TrainSpec& s) {
  const std::pair<std::string_view, double> from_0[] = {
      {"gamma", s.gamma},       {"compute_ms", s.compute_ms},
      {"grace_s", s.grace_s},   {"clip_norm", s.clip_norm},
      {"final_lr", s.final_lr}, {"consensus_power", s.consensus_power}};
  for (const auto& [key, value] : from_0) {
    require(std::isfinite(value) && value >= 0, key, "finite and not negative",
            std::to_string(value));
  }
  require(s.validation_fraction > 0 && s.validation_fraction <= 0.5, "validation_fraction",
          "more than 0 and at most 0.5", std::to_string(s.validation_fraction));
  require(s.mask_share > 0 && s.mask_share < 1, "mask_share", "more than 0 and less than 1",
          std::to_string(s.mask_share));
  require(s.label_smoothing >= 0 && s.label_smoothing < 1, "label_smoothing",
          "at least 0 and less than 1", std::to_string(s.label_smoothing));
  require(s.dropout == kUsualDropout || (s.dropout >= 0 && s.dropout < 1), "dropout",
          "at least 0 and less than 1, or -1 for the model's usual", std::to_string(s.dropout));
}

}  // namespace

void check_train_spec(const TrainSpec& spec) {
  check_texts(spec);
  check_counts(spec);
  check_shares(spec);
  check_timeout(spec.timeout_s, "train");
  const int workers = host_shape_of(spec).workers();
  find_pattern(spec.pattern);
  check_optimizer_choice(spec.optimizer);
  check_hyper(spec.hyper);
  if (spec.topology != kAutoTopology) {
    check_pattern(find_pattern(spec.pattern), spec.optimizer, schedule_of(spec), {&spec.hyper, 1});
  }
  require(spec.link_rates.empty() || spec.topology == "fitted", "link_rates",
          "absent but for the topology fitted", "topology '" + spec.topology + "'");
  method_of(spec);
  check_lr_schedule(spec);
  if (!spec.link_rate.empty()) parse_rate(spec.link_rate, "link_rate");
  parse_duration(spec.link_latency, "link_latency");
  parse_rate(spec.inside_rate, "inside_rate");
  require(spec.gamma == 0 || spec.link_rate.empty(), "link_rate", "absent where gamma is given",
          spec.link_rate);
  require(spec.global_batch >= workers, "global_batch",
          "at least the number of workers (" + std::to_string(workers) + ")",
          std::to_string(spec.global_batch));
}

}  // namespace gossamer
