#include "gossamer/recipe/fields.h"

#include <algorithm>
#include <iterator>
#include <type_traits>

#include "gossamer/algo/choices.h"
#include "gossamer/base/choice.h"
#include "gossamer/base/units.h"
#include "gossamer/exchange/choice_words.h"

namespace gossamer {
namespace {

/// The one that is usual stands first.
std::string task_help() {
  const TaskKind usual = DataSection{}.task;
  std::vector<std::string> each;
  for (const TaskKind task : kAllTasks) {
    const TaskFacts& facts = kTasks[static_cast<std::size_t>(task)];
    std::string text(facts.name);
    if (!facts.files.empty()) text += " (" + std::string(facts.files) + ")";
    each.insert(task == usual ? each.begin() : each.end(), text);
  }
  return listed({each.begin(), each.end()});
}

std::string model_help() {
  std::vector<std::string_view> names;
  for (const ModelFacts& model : model_facts()) names.push_back(model.name);
  return listed(names, ", ") + "; left out: that of the task";
}

/// "0.1 for bert and encoder_decoder, else 0".
std::string dropout_help() {
  std::vector<double> shares;
  for (const ModelFacts& model : model_facts()) {
    const bool is_new = std::ranges::find(shares, model.usual_dropout) == shares.end();
    if (is_new && model.usual_dropout > 0) shares.push_back(model.usual_dropout);
  }
  std::string text = "share of units dropped in training; -1: ";
  for (const double share : shares) {
    std::vector<std::string_view> names;
    for (const ModelFacts& model : model_facts()) {
      if (model.usual_dropout == share) names.push_back(model.name);
    }
    text += shortest(share) + " for " + listed(names, " and ") + ", ";
  }
  return text + "else 0";
}

std::string pattern_help() {
  std::vector<std::string_view> names;
  for (const Pattern& pattern : patterns()) names.push_back(pattern.name);
  return listed(names);
}

/// The patterns that read a number, then what it says.
std::string option_help(std::string_view option, std::string_view says) {
  std::vector<std::string_view> names;
  for (const Pattern& pattern : patterns()) {
    const bool reads = std::ranges::find(pattern.options, option) != pattern.options.end();
    if (reads) names.push_back(pattern.name);
  }
  return listed(names, ", ") + ": " + std::string(says);
}

std::string codec_help() {
  std::vector<std::string_view> names;
  for (const CodecFacts& codec : kCodecs) names.push_back(codec.name);
  return "of payloads between hosts: " + listed(names);
}

template <class Choice>
ChoiceRef choice(Choice& value) {
  return ChoiceRef(&value);
}

using Fields = std::vector<RecipeField>;

Fields fields_of(DataSection& d) {
  return {
      {"data", "task", task_help(), choice(d.task)},
      {"data", "data", "file or folder; default: the Python standard library's sources", &d.data},
      {"data", "target",
       "translation: file of the target language, line by line with data; must be given there",
       &d.target},
      {"data", "validation", "translation: text to validate on; default: a fraction of data",
       &d.validation},
      {"data", "validation_target",
       "translation: the translation of validation; left out: a fraction of target",
       &d.validation_target},
      {"data", "vocabulary", "pieces to learn; 0: bytes for text, 4000 for translation",
       &d.vocabulary},
      {"data", "vocabulary_file", "a SentencePiece model instead; left out: pieces are learnt",
       &d.vocabulary_file},
      {"data", "objective", "text: predict the next token, or masked ones from both sides",
       choice(d.objective)},
      {"data", "mask_share", "objective masked: share of the tokens that are asked for",
       &d.mask_share},
      {"data", "suffixes", "of a folder, only files that end so; left out: all", &d.suffixes},
      {"data", "max_bytes", "read at most so many bytes of text", &d.max_bytes},
      {"data", "context", "tokens per training window (text), longest pair (translation)",
       &d.context},
      {"data", "global_batch", "samples (translation: pieces) per step over all workers",
       &d.global_batch},
      {"data", "validation_fraction", "share of the data kept for validation",
       &d.validation_fraction},
      {"data", "validation_samples", "samples to validate on", &d.validation_samples},
      {"data", "pieces_per_worker", "images: k pieces of the data sorted by class; 0: iid",
       &d.pieces_per_worker},
      {"data", "part", "images: part of the set to train on; default: train, else the first",
       &d.part},
      {"data", "image_size", "images: make them so high and wide; 0: as they are", &d.image_size},
      {"data", "crop", "images: train on a random part of each, resized", &d.crop},
      {"data", "shift", "images: move those to train on by up to so many pixels", &d.shift},
      {"data", "flip", "images: mirror half of those to train on", &d.flip},
  };
}

Fields fields_of(ModelSection& m) {
  return {
      {"model", "model", model_help(), choice(m.model)},
      {"model", "width", "width of the model; 0: its default", &m.size.width},
      {"model", "layers", "layers of the model; 0: its default", &m.size.layers},
      {"model", "heads", "attention heads; 0: the model's default", &m.size.heads},
      {"model", "hidden", "units between attention layers; 0: the model's default", &m.size.hidden},
      {"model", "dropout", dropout_help(), &m.dropout},
  };
}

Fields fields_of(ClusterSection& c) {
  return {
      {"cluster", "hosts", "emulated hosts", &c.hosts},
      {"cluster", "per_host", "workers per host: 2, or one number per host: 1,2,4", &c.per_host},
      {"cluster", "gamma",
       "emulate links so slow that AllReduce communicates gamma times as long as it computes",
       &c.gamma},
      {"cluster", "link_rate", "emulate links of this rate, e.g. 100Mbit/s; left out: by gamma",
       &c.link_rate},
      {"cluster", "link_latency", "latency of the emulated links, e.g. 200us", &c.link_latency},
      {"cluster", "inside_rate", "rate between workers of one host, e.g. 10GB/s", &c.inside_rate},
      {"cluster", "compute_ms", "compute time of a step for gamma; 0: measure it", &c.compute_ms},
      {"cluster", "tls", "encrypt what processes of several hosts exchange (TLS 1.3)", &c.tls},
  };
}

Fields fields_of(AlgorithmSection& a) {
  return {
      {"algorithm", "topology",
       "who averages with whom; see gossamer topology --list; auto: what gossamer plan says",
       &a.topology},
      {"algorithm", "pattern", pattern_help(), choice(a.pattern)},
      {"algorithm", "group_method",
       "how groups average: " + listed(group_method_names()) +
           " (default: " + std::string(name_of(GroupMethod::ring)) + " for allreduce)",
       choice(a.group_method)},
      {"algorithm", "update",
       listed(update_names()) + " (default: backward where gradients travel)", choice(a.update)},
      {"algorithm", "codec", codec_help(), choice(a.codec)},
      {"algorithm", "late", "wait for late neighbours, or skip them", choice(a.late)},
      {"algorithm", "staleness", "with late = skip: steps that a payload may be old", &a.staleness},
      {"algorithm", "lost", "where a worker is lost: end with an error, or go_on without it",
       choice(a.lost)},
      {"algorithm", "stagger", "let bucket b follow the schedule at t + b", &a.stagger},
      {"algorithm", "buckets", "at least so many buckets of equal size", &a.buckets},
      {"algorithm", "degree", "neighbours per round (base_k, random_directed)", &a.degree},
      {"algorithm", "link_rates",
       "rates of the hosts, for the topology fitted: 20Mbit/s,5Mbit/s; left out: equal",
       &a.link_rates},
      {"algorithm", "global_average", "average over all workers every H steps; 0: never",
       &a.global_average},
      {"algorithm", "adaptive_average", "the same with a period that follows the loss (AGA)",
       &a.adaptive_average},
      {"algorithm", "local_steps", "mix only every H-th step; 0: every step", &a.local_steps},
      {"algorithm", "rounds_per_step", "mix so many rounds in every step", &a.rounds_per_step},
      {"algorithm", "lazy", "mix with (I + W) / 2", &a.lazy},
      {"algorithm", "outer_every",
       option_help("outer_every", "rounds from one outer step to the next"), &a.outer_every},
      {"algorithm", "outer_momentum", option_help("outer_momentum", "momentum of the outer steps"),
       &a.outer_momentum},
      {"algorithm", "outer_lr", option_help("outer_lr", "learning rate of the outer steps"),
       &a.outer_lr},
      {"algorithm", "consensus", option_help("consensus", "share of the mix that a step takes"),
       &a.consensus},
      {"algorithm", "consensus_power", "dsgd_ac: mixes by (lr / peak lr) to this power",
       &a.consensus_power},
      {"algorithm", "clip_norm", "limit of the gradient's global norm; 0: none", &a.clip_norm},
  };
}

Fields fields_of(OptimizerSection& o) {
  Hyper& h = o.hyper;
  return {
      {"optimizer", "optimizer", listed(optimizer_choices()), choice(o.optimizer)},
      {"optimizer", "lr", "peak learning rate", &h.lr},
      {"optimizer", "weight_decay", "of weights; biases and norms are not decayed",
       &h.weight_decay},
      {"optimizer", "beta1", "Adam", &h.beta1},
      {"optimizer", "beta2", "Adam", &h.beta2},
      {"optimizer", "eps", "Adam", &h.eps},
      {"optimizer", "noise_share",
       "Adam: share of the gradient's noise in the denominator, e.g. 1/workers; 1: all",
       &h.noise_share},
      {"optimizer", "momentum", "momentum", &h.momentum},
      {"optimizer", "dampening", "momentum", &h.dampening},
      {"optimizer", "nesterov", "momentum", &h.nesterov},
      {"optimizer", "accumulate", "AccumAdam: iterations per update of its momenta", &h.accumulate},
      {"optimizer", "lr_schedule", listed(lr_schedule_names()), choice(o.lr_schedule)},
      {"optimizer", "warmup", "steps of linear warm-up", &o.warmup},
      {"optimizer", "final_lr", "cosine: fraction of lr at the end", &o.final_lr},
      {"optimizer", "label_smoothing", "share of a target that goes to all classes equally",
       &o.label_smoothing},
  };
}

Fields fields_of(RunSection& r) {
  return {
      {"run", "steps", "training steps", &r.steps},
      {"run", "seed", "of initial values, batches and random graphs", &r.seed},
      {"run", "evaluate_every", "validate the consensus model every so many steps; 0: at the end",
       &r.evaluate_every},
      {"run", "checkpoint_every",
       "with --out, steps between checkpoints; 0: none; -1: a tenth of the run, but at least 50",
       &r.checkpoint_every},
      {"run", "keep", "checkpoints to keep", &r.keep},
      {"run", "trace_steps", "with --out, keep a trace of the last so many steps; 0: none",
       &r.trace_steps},
      {"run", "grace_s",
       "with checkpoints, seconds in which SIGTERM and SIGHUP let all workers save; 0: none",
       &r.grace_s},
      {"run", "timeout_s", "longest wait for another worker, in seconds", &r.timeout_s},
      {"run", "suspect_s", "lost=go_on: a worker is lost after so many seconds without a word",
       &r.suspect_s},
      {"run", "kernel_threads", "threads of one worker's update", &r.kernel_threads},
      {"run", "read_ahead",
       "JPEG, PNG: decode the images of so many steps ahead, a thread for each", &r.read_ahead},
      {"run", "device", "cpu, or cuda: a GPU for each worker of a host; cuda:1: that one",
       &r.device},
  };
}

}  // namespace

std::vector<RecipeField> recipe_fields(Recipe& recipe) {
  Fields all;
  const auto add = [&all](Fields fields) { std::ranges::move(fields, std::back_inserter(all)); };
  add(fields_of(recipe.data));
  add(fields_of(recipe.model));
  add(fields_of(recipe.cluster));
  add(fields_of(recipe.algorithm));
  add(fields_of(recipe.optimizer));
  add(fields_of(recipe.run));
  return all;
}

Json to_json(const RecipeField& field) {
  if (const auto* choice = std::get_if<ChoiceRef>(&field.target)) return choice->word();
  Json json;
  const auto take = [&json](const auto& target) {
    if constexpr (std::is_pointer_v<std::remove_cvref_t<decltype(target)>>) json = *target;
  };
  std::visit(take, field.target);
  return json;
}

bool is_data_path(std::string_view key) {
  return key == "data" || key == "target" || key == "validation" || key == "validation_target" ||
         key == "vocabulary_file";
}

}  // namespace gossamer
