#include "gossamer/recipe/spec.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <cstdio>
#include <numbers>
#include <sstream>

#include "gossamer/algo/optimizer.h"
#include "gossamer/algo/pattern.h"
#include "gossamer/base/errors.h"
#include "gossamer/base/toml.h"
#include "gossamer/base/units.h"
#include "gossamer/graph/schedule_spec.h"
#include "gossamer/recipe/host_shape.h"

namespace gossamer {
namespace {

constexpr std::string_view kLrSchedules[] = {"constant", "cosine", "inverse_sqrt"};
constexpr std::string_view kSections[] = {"data",      "model",     "cluster",
                                          "algorithm", "optimizer", "run"};

std::size_t index_of(std::string_view kind, std::string_view word,
                     std::span<const std::string_view> valid) {
  const auto found = std::ranges::find(valid, word);
  if (found == valid.end()) fail_unknown_name("train", kind, word, valid);
  return static_cast<std::size_t>(found - valid.begin());
}

void read_field(const TomlTable& table, const TrainField& field) {
  const auto read = [&](auto* target) {
    using Type = std::remove_pointer_t<decltype(target)>;
    if constexpr (std::is_same_v<Type, std::uint64_t>) {
      std::int64_t value = 0;
      if (!table.read(field.key, value)) return;
      if (value < 0) {
        fail_argument({.place = "train",
                       .what = std::string(field.key) + " must be not negative",
                       .got = std::to_string(value)});
      }
      *target = static_cast<std::uint64_t>(value);
    } else {
      table.read(field.key, *target);
    }
  };
  std::visit(read, field.target);
}

std::string quoted_toml(const std::string& text) {
  std::string quoted = "\"";
  for (const char c : text) {
    if (std::iscntrl(static_cast<unsigned char>(c)) != 0) {  // no line of TOML may hold it
      std::array<char, 8> code{};
      std::snprintf(code.data(), code.size(), "\\u%04x", static_cast<unsigned char>(c));
      quoted += code.data();
      continue;
    }
    if (c == '"' || c == '\\') quoted += '\\';
    quoted += c;
  }
  return quoted + "\"";
}

std::string toml_value(const TrainField::Target& target) {
  const auto write = [](const auto* value) -> std::string {
    using Type = std::remove_cvref_t<decltype(*value)>;
    if constexpr (std::is_same_v<Type, std::string>) {
      return quoted_toml(*value);
    } else if constexpr (std::is_same_v<Type, bool>) {
      return *value ? "true" : "false";
    } else if constexpr (std::is_same_v<Type, std::vector<std::string>>) {
      std::string list;
      for (const std::string& entry : *value)
        list += (list.empty() ? "" : ", ") + quoted_toml(entry);
      return "[" + list + "]";
    } else if constexpr (std::is_same_v<Type, double>) {
      std::ostringstream text;
      text.precision(17);
      text << *value;
      const std::string digits = text.str();
      return digits.find_first_of(".en") == std::string::npos ? digits + ".0" : digits;
    } else {
      return std::to_string(*value);
    }
  };
  return std::visit(write, target);
}

}  // namespace

std::vector<TrainField> train_fields(TrainSpec& s) {
  return {
      {"data", "task", "text (a file or folder), images (IDX, CIFAR) or translation", &s.task},
      {"data", "data", "file or folder; default: the Python standard library's sources", &s.data},
      {"data", "target", "translation: file of the target language, line by line with data",
       &s.target},
      {"data", "validation", "translation: text to validate on; default: a fraction of data",
       &s.validation},
      {"data", "validation_target", "translation: the translation of validation",
       &s.validation_target},
      {"data", "vocabulary", "pieces to learn; 0: bytes for text, 4000 for translation",
       &s.vocabulary},
      {"data", "vocabulary_file", "a SentencePiece model instead", &s.vocabulary_file},
      {"data", "objective", "text: predict the next token, or masked ones from both sides",
       &s.objective},
      {"data", "mask_share", "objective masked: share of the tokens that are asked for",
       &s.mask_share},
      {"data", "suffixes", "of a folder, only files that end so", &s.suffixes},
      {"data", "max_bytes", "read at most so many bytes of text", &s.max_bytes},
      {"data", "context", "tokens per training window (text), longest pair (translation)",
       &s.context},
      {"data", "global_batch", "samples (translation: pieces) per step over all workers",
       &s.global_batch},
      {"data", "validation_fraction", "share of the data kept for validation",
       &s.validation_fraction},
      {"data", "validation_samples", "samples to validate on", &s.validation_samples},
      {"data", "pieces_per_worker", "images: k pieces of the data sorted by class; 0: iid",
       &s.pieces_per_worker},
      {"data", "shift", "images: move those to train on by up to so many pixels", &s.shift},
      {"data", "flip", "images: mirror half of those to train on", &s.flip},
      {"model", "model",
       "softmax_regression, mlp, residual_cnn, resnet50, mobilenet_v2, efficientnet_b0, "
       "transformer, bert, encoder_decoder",
       &s.model},
      {"model", "width", "width of the model; 0: its default", &s.width},
      {"model", "layers", "layers of the model; 0: its default", &s.layers},
      {"model", "heads", "attention heads; 0: the model's default", &s.heads},
      {"model", "hidden", "units between attention layers; 0: the model's default", &s.hidden},
      {"model", "dropout",
       "share of units dropped in training; -1: 0.1 for bert and encoder_decoder, else 0",
       &s.dropout},
      {"cluster", "hosts", "emulated hosts", &s.hosts},
      {"cluster", "per_host", "workers per host: 2, or one number per host: 1,2,4", &s.per_host},
      {"cluster", "gamma",
       "emulate links so slow that AllReduce communicates gamma times as long as it computes",
       &s.gamma},
      {"cluster", "link_rate", "emulate links of this rate, e.g. 100Mbit/s", &s.link_rate},
      {"cluster", "link_latency", "latency of the emulated links, e.g. 200us", &s.link_latency},
      {"cluster", "inside_rate", "rate between workers of one host", &s.inside_rate},
      {"cluster", "compute_ms", "compute time of a step for gamma; 0: measure it", &s.compute_ms},
      {"cluster", "tls", "encrypt what processes of several hosts exchange (TLS 1.3)", &s.tls},
      {"algorithm", "topology",
       "who averages with whom; see gossamer topology --list; auto: what gossamer plan says",
       &s.topology},
      {"algorithm", "pattern",
       "cwa, cwa_moments, gradient_gossip, atc, allreduce, exact_diffusion, extra, "
       "gradient_tracking, "
       "gradient_tracking_atc, dmsgd, qg_dmsgd, push_sum, slowmo, noloco or dsgd_ac",
       &s.pattern},
      {"algorithm", "group_method",
       "how groups average: hierarchical, direct or ring (default: ring for allreduce)",
       &s.group_method},
      {"algorithm", "update", "step or backward (default: backward where gradients travel)",
       &s.update},
      {"algorithm", "codec", "of payloads between hosts: fp32, bf16 or int8", &s.codec},
      {"algorithm", "late", "wait for late neighbours, or skip them", &s.late},
      {"algorithm", "staleness", "with late = skip: steps that a payload may be old", &s.staleness},
      {"algorithm", "stagger", "let bucket b follow the schedule at t + b", &s.stagger},
      {"algorithm", "buckets", "at least so many buckets of equal size", &s.buckets},
      {"algorithm", "degree", "neighbours per round (base_k, random_directed)", &s.degree},
      {"algorithm", "link_rates", "of the hosts, for the topology fitted", &s.link_rates},
      {"algorithm", "global_average", "average over all workers every H steps; 0: never",
       &s.global_average},
      {"algorithm", "adaptive_average", "the same with a period that follows the loss (AGA)",
       &s.adaptive_average},
      {"algorithm", "local_steps", "mix only every H-th step; 0: every step", &s.local_steps},
      {"algorithm", "rounds_per_step", "mix so many rounds in every step", &s.rounds_per_step},
      {"algorithm", "lazy", "mix with (I + W) / 2", &s.lazy},
      {"algorithm", "outer_every", "slowmo, noloco: rounds from one outer step to the next",
       &s.hyper.outer_every},
      {"algorithm", "outer_momentum", "slowmo, noloco: momentum of the outer steps",
       &s.hyper.outer_momentum},
      {"algorithm", "outer_lr", "slowmo, noloco: learning rate of the outer steps",
       &s.hyper.outer_lr},
      {"algorithm", "consensus", "dsgd_ac, cwa_moments: share of the mix that a step takes",
       &s.hyper.consensus},
      {"algorithm", "consensus_power", "dsgd_ac: mixes by (lr / peak lr) to this power",
       &s.consensus_power},
      {"algorithm", "clip_norm", "limit of the gradient's global norm; 0: none", &s.clip_norm},
      {"optimizer", "optimizer", "sgd, momentum, adam, adamw, accum_adam or accum_adamw",
       &s.optimizer},
      {"optimizer", "lr", "peak learning rate", &s.hyper.lr},
      {"optimizer", "weight_decay", "of weights; biases and norms are not decayed",
       &s.hyper.weight_decay},
      {"optimizer", "beta1", "Adam", &s.hyper.beta1},
      {"optimizer", "beta2", "Adam", &s.hyper.beta2},
      {"optimizer", "eps", "Adam", &s.hyper.eps},
      {"optimizer", "noise_share",
       "Adam: share of the gradient's noise in the denominator, e.g. 1/workers; 1: all",
       &s.hyper.noise_share},
      {"optimizer", "momentum", "momentum", &s.hyper.momentum},
      {"optimizer", "dampening", "momentum", &s.hyper.dampening},
      {"optimizer", "nesterov", "momentum", &s.hyper.nesterov},
      {"optimizer", "accumulate", "AccumAdam: iterations per update of its momenta",
       &s.hyper.accumulate},
      {"optimizer", "lr_schedule", "constant, cosine or inverse_sqrt", &s.lr_schedule},
      {"optimizer", "warmup", "steps of linear warm-up", &s.warmup},
      {"optimizer", "final_lr", "cosine: fraction of lr at the end", &s.final_lr},
      {"optimizer", "label_smoothing", "share of a target that goes to all classes equally",
       &s.label_smoothing},
      {"run", "steps", "training steps", &s.steps},
      {"run", "seed", "of initial values, batches and random graphs", &s.seed},
      {"run", "evaluate_every", "validate the consensus model every so many steps; 0: at the end",
       &s.evaluate_every},
      {"run", "checkpoint_every",
       "with --out, steps between checkpoints; 0: none; -1: a tenth of the run, but at least 50",
       &s.checkpoint_every},
      {"run", "keep", "checkpoints to keep", &s.keep},
      {"run", "trace_steps", "with --out, keep a trace of the last so many steps; 0: none",
       &s.trace_steps},
      {"run", "grace_s",
       "with checkpoints, seconds in which SIGTERM and SIGHUP let all workers save; 0: none",
       &s.grace_s},
      {"run", "timeout_s", "longest wait for another worker, in seconds", &s.timeout_s},
      {"run", "kernel_threads", "threads of one worker's update", &s.kernel_threads},
  };
}

namespace {

void read_fields(const TomlTable& recipe, TrainSpec& spec) {
  recipe.allow_only(kSections);
  const std::vector<TrainField> fields = train_fields(spec);
  for (std::string_view section : kSections) {
    const auto table = recipe.table(section);
    if (!table) continue;
    std::vector<std::string_view> keys;
    for (const TrainField& field : fields) {
      if (field.section == section) keys.push_back(field.key);
    }
    table->allow_only(keys);
    for (const TrainField& field : fields) {
      if (field.section == section) read_field(*table, field);
    }
  }
}

}  // namespace

void read_recipe(const std::string& path, TrainSpec& spec) { read_fields(load_toml(path), spec); }

void read_recipe_text(std::string_view text, std::string_view name, TrainSpec& spec) {
  read_fields(parse_toml(text, name), spec);
}

std::string to_toml(const TrainSpec& spec) {
  TrainSpec copy = spec;
  std::string text;
  std::string_view section;
  for (const TrainField& field : train_fields(copy)) {
    if (field.section != section) {
      section = field.section;
      text += (text.empty() ? "[" : "\n[") + std::string(section) + "]\n";
    }
    text += std::string(field.key) + " = " + toml_value(field.target) + "\n";
  }
  return text;
}

HostShape host_shape_of(const TrainSpec& spec) {
  return parse_host_shape(spec.hosts, spec.per_host, "train");
}

double lr_factor(const TrainSpec& spec, std::int64_t t) {
  const auto step = static_cast<double>(t);
  const auto warmup = static_cast<double>(std::max<std::int64_t>(spec.warmup, 1));
  if (t < spec.warmup) return step / warmup;
  if (spec.lr_schedule == "inverse_sqrt") return std::sqrt(warmup / std::max(step, warmup));
  if (spec.lr_schedule == "constant") return 1;
  const double span = std::max(1.0, static_cast<double>(spec.steps - spec.warmup));
  const double progress = std::min(1.0, (step - static_cast<double>(spec.warmup)) / span);
  const double wave = 0.5 * (1 + std::cos(std::numbers::pi * progress));
  return spec.final_lr + (1 - spec.final_lr) * wave;
}

double consensus_factor(const TrainSpec& spec, std::int64_t t) {
  if (spec.pattern != "dsgd_ac") return spec.hyper.consensus;
  return spec.hyper.consensus * std::pow(lr_factor(spec, t), spec.consensus_power);
}

void check_lr_schedule(const TrainSpec& spec) {
  index_of("lr_schedule", spec.lr_schedule, kLrSchedules);
}

}  // namespace gossamer
