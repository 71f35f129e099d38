#pragma once
/// Everything a training run is told, with its defaults: one table of fields serves the recipe
/// file, the flags and run.toml.

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "gossamer/algo/pass.h"
#include "gossamer/base/cluster.h"
#include "gossamer/exchange/method.h"

namespace gossamer {

/// The word for a topology that is chosen when the run begins; see choose_method().
inline constexpr std::string_view kAutoTopology = "auto";

/// The share that stands for what the model is usually trained with.
inline constexpr double kUsualDropout = -1;

/// The steps between checkpoints that stand for what the command line chooses.
inline constexpr std::int64_t kUsualCheckpoints = -1;

struct TrainSpec {
  // [data]
  std::string task = "text";
  std::string data;        ///< file or folder; empty: the Python standard library's sources (text)
  std::string target;      ///< translation: the file of the target language
  std::string validation;  ///< translation: files to validate on; empty: a fraction of the pairs
  std::string validation_target;
  std::int64_t vocabulary = 0;  ///< pieces; 0: bytes for text, 4000 pieces for translation
  std::string vocabulary_file;
  bool trusts_vocabulary = false;  ///< by a flag alone: no file may ask to be trusted
  std::string objective = "next";
  double mask_share = 0.15;
  std::vector<std::string> suffixes = {".py", ".txt", ".md"};
  std::int64_t max_bytes = 8'000'000;
  std::int64_t context = 64;
  std::int64_t global_batch = 32;
  double validation_fraction = 0.1;
  std::int64_t validation_samples = 512;
  int pieces_per_worker = 0;
  std::int64_t shift = 0;
  bool flip = false;
  // [model]
  std::string model;  ///< empty: the usual one for the task, see train_model.cpp
  std::int64_t width = 0;
  std::int64_t layers = 0;
  std::int64_t heads = 0;
  std::int64_t hidden = 0;
  double dropout = kUsualDropout;
  // [cluster]
  int hosts = 4;
  std::string per_host = "2";  ///< one number, or one per host: "1,2,4"
  double gamma = 0;       ///< AllReduce communication time / compute time; 0: links not emulated
  std::string link_rate;  ///< instead of gamma, e.g. "20Mbit/s"
  std::string link_latency = "0s";
  std::string inside_rate = "unlimited";
  double compute_ms = 0;  ///< of a step, for gamma; 0: measured before the run
  bool tls = false;       ///< for what processes send over TCP; threads send nothing
  // [algorithm]
  std::string topology = "alternating_exponential_ring";
  std::string pattern = "cwa";
  std::string group_method;  ///< empty: ring for uncoded allreduce, else hierarchical
  std::string update;        ///< empty: backward for allreduce, else step
  std::string codec = "fp32";
  std::string late = "wait";
  std::int64_t staleness = 1;
  bool stagger = true;
  int buckets = 8;
  int degree = 1;
  std::vector<std::string> link_rates;  ///< by host, for the topology fitted
  int global_average = 0;
  int adaptive_average = 0;
  int local_steps = 0;
  int rounds_per_step = 0;
  bool lazy = false;
  double consensus_power = 1;
  double clip_norm = 0;
  // [optimizer]
  std::string optimizer = "adamw";
  Hyper hyper{.lr = 1e-3, .weight_decay = 0.01, .beta2 = 0.98};
  std::string lr_schedule = "cosine";
  std::int64_t warmup = 20;
  double final_lr = 0.1;  ///< cosine: fraction of lr at the end
  double label_smoothing = 0;
  // [run]
  std::int64_t steps = 200;
  std::uint64_t seed = 1;
  std::int64_t evaluate_every = 0;
  std::int64_t checkpoint_every = kUsualCheckpoints;
  int keep = 2;
  int trace_steps = 64;
  double grace_s = 25;  ///< schedulers give 30 before they kill
  double timeout_s = 60;
  int kernel_threads = 1;
};

/// A field of the spec by section and key; the key is the same word in TOML and, with dashes, as a
/// flag.
struct TrainField {
  using Target = std::variant<std::string*, bool*, int*, std::int64_t*, std::uint64_t*, double*,
                              std::vector<std::string>*>;
  std::string_view section;
  std::string_view key;
  std::string_view help;
  Target target;
};

/// The table, pointing into `spec`.
std::vector<TrainField> train_fields(TrainSpec& spec);

/// Overwrites the fields that the recipe has. Unknown sections and keys, wrong types and unreadable
/// files throw, naming file, line, and the nearest valid word.
void read_recipe(const std::string& path, TrainSpec& spec);
/// The same of a text; `name` stands for the file in messages.
void read_recipe_text(std::string_view text, std::string_view name, TrainSpec& spec);

/// The whole spec as TOML that read_recipe() takes.
std::string to_toml(const TrainSpec& spec);

/// Throws std::invalid_argument for values that cannot work together or are out of range, and for
/// texts that the files of a run cannot hold.
void check_train_spec(const TrainSpec& spec);

/// Throws std::invalid_argument for an unknown lr_schedule.
void check_lr_schedule(const TrainSpec& spec);

/// hosts × per_host.
HostShape host_shape_of(const TrainSpec& spec);

/// [algorithm] as a value, and back: the fields of method_fields() by their keys. Throws
/// std::invalid_argument for words that are none.
MethodSpec method_of(const TrainSpec& spec);
void set_method(const MethodSpec& method, TrainSpec& spec);

/// The schedule of the topology with its modifiers.
Schedule schedule_of(const TrainSpec& spec);

/// The learning rate of step t ≥ 1 as a factor of lr.
double lr_factor(const TrainSpec& spec, std::int64_t t);

/// Hyper::consensus of step t ≥ 1.
double consensus_factor(const TrainSpec& spec, std::int64_t t);

}  // namespace gossamer
