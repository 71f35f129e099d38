#pragma once
/// Everything a training run is told, with its defaults: a section of the file is a struct, a key
/// is a member of its name.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "gossamer/algo/optimizer.h"
#include "gossamer/algo/pattern.h"
#include "gossamer/base/cluster.h"
#include "gossamer/exchange/method.h"
#include "gossamer/recipe/models.h"
#include "gossamer/recipe/rates.h"
#include "gossamer/recipe/tasks.h"

namespace gossamer {

/// The word for a topology that is chosen when the run begins; see choose_method().
inline constexpr std::string_view kAutoTopology = "auto";

/// The share that stands for what the model is usually trained with.
inline constexpr double kUsualDropout = -1;

/// The steps between checkpoints that stand for what the command line chooses.
inline constexpr std::int64_t kUsualCheckpoints = -1;

struct DataSection {
  TaskKind task = TaskKind::text;
  std::string data;        ///< file or folder; empty: the Python standard library's sources (text)
  std::string target;      ///< translation: the file of the target language
  std::string validation;  ///< translation: files to validate on; empty: a fraction of the pairs
  std::string validation_target;
  std::int64_t vocabulary = 0;  ///< pieces; 0: bytes for text, 4000 pieces for translation
  std::string vocabulary_file;
  bool trusts_vocabulary = false;  ///< by a flag alone: no file may ask to be trusted
  Objective objective = Objective::next;
  double mask_share = 0.15;
  std::vector<std::string> suffixes = {".py", ".txt", ".md"};
  std::int64_t max_bytes = 8'000'000;
  std::int64_t context = 64;
  std::int64_t global_batch = 32;
  double validation_fraction = 0.1;
  std::int64_t validation_samples = 512;
  int pieces_per_worker = 0;
  std::string part;             ///< images; empty: "train", else the first
  std::int64_t image_size = 0;  ///< 0: the images' own
  bool crop = false;
  std::int64_t shift = 0;
  bool flip = false;
};

struct ModelSection {
  const ModelFacts* model = nullptr;  ///< null: usual_model() for the data
  ModelSize size;
  double dropout = kUsualDropout;
};

struct ClusterSection {
  int hosts = 4;
  std::string per_host = "2";  ///< one number, or one per host: "1,2,4"
  double gamma = 0;       ///< AllReduce communication time / compute time; 0: links not emulated
  std::string link_rate;  ///< instead of gamma, e.g. "20Mbit/s"
  std::string link_latency = "0s";
  std::string inside_rate = "unlimited";
  double compute_ms = 0;  ///< of a step, for gamma; 0: measured before the run
  bool tls = false;       ///< for what processes send over TCP; threads send nothing
};

struct AlgorithmSection {
  std::string topology = "alternating_exponential_ring";  ///< a name, a file, or kAutoTopology
  const Pattern* pattern = &find_pattern("cwa");
  std::optional<GroupMethod> group_method;  ///< none: ring for uncoded allreduce, else hierarchical
  std::optional<UpdateAt> update;           ///< none: the pattern's usual one
  Codec codec = Codec::fp32;
  Late late = Late::wait;
  std::int64_t staleness = 1;
  Lost lost = Lost::error;
  bool stagger = true;
  int buckets = 8;
  int degree = 1;
  std::vector<std::string> link_rates;  ///< by host, for the topology fitted
  int global_average = 0;
  int adaptive_average = 0;
  int local_steps = 0;
  int rounds_per_step = 0;
  bool lazy = false;
  int outer_every = Hyper{}.outer_every;
  double outer_momentum = Hyper{}.outer_momentum;
  double outer_lr = Hyper{}.outer_lr;
  double consensus = Hyper{}.consensus;
  double consensus_power = 1;
  double clip_norm = 0;
};

struct OptimizerSection {
  const Optimizer* optimizer = &find_optimizer("adamw");
  Hyper hyper{.lr = 1e-3, .weight_decay = 0.01, .beta2 = 0.98};  ///< but for [algorithm]'s numbers
  LrSchedule lr_schedule = LrSchedule::cosine;
  std::int64_t warmup = 20;
  double final_lr = 0.1;  ///< cosine: fraction of lr at the end
  double label_smoothing = 0;
};

struct RunSection {
  std::int64_t steps = 200;
  std::uint64_t seed = 1;
  std::int64_t evaluate_every = 0;
  std::int64_t checkpoint_every = kUsualCheckpoints;
  int keep = 2;
  int trace_steps = 64;
  double grace_s = 25;  ///< schedulers give 30 before they kill
  double timeout_s = 60;
  double suspect_s = kSuspectedAfter.count();  ///< for Lost::go_on
  int kernel_threads = 1;
  int read_ahead = 1;          ///< steps whose batches of images in files are decoded meanwhile
  std::string device = "cpu";  ///< where parameters are, as torch names it
};

struct Recipe {
  DataSection data;
  ModelSection model;
  ClusterSection cluster;
  AlgorithmSection algorithm;
  OptimizerSection optimizer;
  RunSection run;
};

/// Throws std::invalid_argument for values that cannot work together or are out of range, and for
/// texts that the files of a run cannot hold.
void check_recipe(const Recipe& recipe);

/// hosts × per_host.
HostShape host_shape_of(const ClusterSection& cluster);
void set_hosts(ClusterSection& cluster, const HostShape& shape);

/// None stands for what the model is usually trained with.
std::optional<double> dropout_of(const ModelSection& model);

/// The section as a value, and back: the fields of method_fields() by their keys. `seed` is that of
/// random topologies. `ddp` becomes allreduce, which is its stand-in.
MethodSpec method_of(const AlgorithmSection& algorithm, std::uint64_t seed);
void set_method(const MethodSpec& method, AlgorithmSection& algorithm);

/// The numbers of the optimizer with those of the algorithm.
Hyper hyper_of(const OptimizerSection& optimizer, const AlgorithmSection& algorithm);

}  // namespace gossamer
