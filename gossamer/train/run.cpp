#include "gossamer/train/run.h"

#include <torch/nn/module.h>

#include <algorithm>
#include <cstdio>
#include <mutex>

#include "gossamer/base/disk.h"
#include "gossamer/base/errors.h"
#include "gossamer/base/index.h"
#include "gossamer/base/outside_error.h"
#include "gossamer/base/units.h"
#include "gossamer/engine/worker_threads.h"
#include "gossamer/graph/topology.h"
#include "gossamer/recipe/file.h"
#include "gossamer/torch/devices/places.h"
#include "gossamer/torch/process.h"
#include "gossamer/train/checkpoint.h"
#include "gossamer/train/default_text.h"
#include "gossamer/train/trainer.h"
#include "gossamer/transport/threads.h"

namespace gossamer {
namespace {

/// Before anything is read. A model of other data is refused once these are known.
void check_model(const ModelSection& section, TaskKind task) {
  if (section.model == nullptr) return;
  const bool reads_images = section.model->input == InputKind::images;
  const bool is_of_images = task == TaskKind::images;
  if (reads_images == is_of_images) check_sizes(*section.model, section.size, dropout_of(section));
}

TaskArgs task_args(const Recipe& recipe) {
  const DataSection& data = recipe.data;
  const bool default_text = data.data.empty() && data.task == TaskKind::text;
  return {.path = default_text ? python_sources() : std::filesystem::path(data.data),
          .part = data.part,
          .global_batch = data.global_batch,
          .seed = recipe.run.seed,
          .validation_fraction = data.validation_fraction,
          .validation_samples = data.validation_samples,
          .pieces_per_worker = data.pieces_per_worker,
          .image_size = data.image_size,
          .augmentation = {.shift = data.shift, .flip = data.flip, .crop = data.crop},
          .read_ahead = recipe.run.read_ahead,
          .context = data.context,
          .suffixes = data.suffixes,
          .max_bytes = data.max_bytes,
          .objective = data.objective,
          .mask_share = data.mask_share,
          .target = data.target,
          .validation = data.validation,
          .validation_target = data.validation_target,
          .vocabulary = data.vocabulary,
          .vocabulary_file = data.vocabulary_file,
          .vocabulary_trust = data.trusts_vocabulary ? Trust::all : Trust::sealed};
}

/// The model as it is before a topology is chosen, to be asked for its sizes.
TrainModel make_model_for_any(Recipe recipe, const Task& task) {
  recipe.run.device = "cpu";
  if (recipe.algorithm.topology == kAutoTopology) recipe.algorithm.topology = "complete";
  return make_train_model(recipe, task);
}

/// Elements of the buckets that a run of this recipe has.
std::vector<std::int64_t> bucket_sizes(const Recipe& recipe, const Task& task) {
  const TrainModel model = make_model_for_any(recipe, task);
  return bucket_sizes(layout_of(model.tensors.trained, model.layout));
}

}  // namespace

ClusterSpec emulated_cluster(const ClusterSection& section, double link_bytes_per_s) {
  ClusterSpec cluster;
  const double rate = link_bytes_per_s > 0 ? link_bytes_per_s : LinkSpec{}.rate_bytes_per_s;
  const LinkSpec link{rate, parse_duration(section.link_latency, "link_latency")};
  const LinkSpec inside{parse_rate(section.inside_rate, "inside_rate"), 0};
  for (int workers : host_shape_of(section).workers_per_host) {
    cluster.hosts.push_back({.workers = workers, .link = link, .inside = inside});
  }
  return cluster;
}

FolderLock prepare_folder(const Recipe& recipe, const Task& task, const TrainRunArgs& args) {
  if (args.out.empty()) return {};
  std::error_code error;
  std::filesystem::create_directories(args.out, error);
  if (error) {
    fail_outside({.place = "train",
                  .what = "cannot make the folder " + args.out.string(),
                  .got = error.message()});
  }
  FolderLock lock = lock_run(args.out, args.job);
  const auto file = args.out / "run.toml";
  const bool was_lost = args.may_begin_again && !is_there(args.out / "summary.json");
  if (!args.resume && !was_lost && is_there(file)) {
    fail_argument({.place = "train",
                   .what = args.out.string() + " already holds a run",
                   .remedy = "continue it with --resume " + args.out.string() +
                             ", or choose another folder, and compare both runs with gossamer "
                             "report"});
  }
  if (args.resume) {
    checkpoint_to_resume({args.out, recipe, task.content});  // before anything is replaced
    remove_traces(args.out);
  }
  write_file(file, to_toml(recipe));
  return lock;
}

void write_summary(const Recipe& recipe, const TrainResult& result,
                   const std::filesystem::path& out) {
  if (!out.empty()) write_file(out / "summary.json", summary_json(recipe, result).dump(2) + "\n");
}

Task open_task(const Recipe& recipe) {
  check_model(recipe.model, recipe.data.task);
  return open_task(recipe.data.task, task_args(recipe));
}

double measure_compute_s(const Recipe& recipe, const Task& task) {
  constexpr std::int64_t kWarmUp = 4;
  constexpr double kLongEnough_s = 4;
  constexpr std::int64_t kMostSteps = 60;
  Recipe alone = recipe;
  alone.algorithm.topology = "complete";
  alone.algorithm.pattern = &find_pattern("cwa");
  alone.algorithm.update = UpdateAt::step;
  const HostShape shape = host_shape_of(recipe.cluster);
  double step_s = 0;
  run_workers(make_threads_transports(emulated_cluster(recipe.cluster, 0)),
              [&](Transport& transport) {
                use_one_torch_thread();
                const int rank = transport.describe().rank;
                TrainModel model = make_train_model(alone, task, shape.local_rank_of(rank));
                TensorEngineOptions options = engine_options(alone, model);
                options.engine.schedule = alone_schedule(shape);
                const std::vector<Hyper> groups = options.engine.groups;
                Trainer trainer(alone, std::move(model), std::move(options), transport);
                Engine& engine = trainer.engine();
                trainer.tensors().start();
                const auto run = [&](std::int64_t steps) {
                  engine.collectives().barrier();
                  const auto begin = Clock::now();
                  for (std::int64_t k = 0; k < steps; ++k) {
                    trainer.step(task, {rank, shape.workers()}, groups);
                  }
                  trainer.wait_for_device();
                  engine.collectives().barrier();
                  double seconds = std::chrono::duration<double>(Clock::now() - begin).count();
                  engine.collectives().mean({&seconds, 1});
                  return seconds / static_cast<double>(steps);
                };
                run(kWarmUp);
                const double rough_s = run(kWarmUp);
                const auto steps = std::clamp<std::int64_t>(
                    static_cast<std::int64_t>(kLongEnough_s / rough_s), kWarmUp, kMostSteps);
                const double measured_s = run(steps);
                if (rank == 0) step_s = measured_s;
              });
  return step_s;
}

double allreduce_bytes_per_host(const HostShape& shape, std::int64_t parameters) {
  std::vector<double> sent(at(shape.hosts()), 0.0);
  for (int rank = 0; rank < shape.workers(); ++rank) {
    const Plan plan = compile(complete_round(shape.workers()), shape, rank, parameters,
                              {.group_method = GroupMethod::ring, .finished_averages = true});
    sent[at(shape.host_of(rank))] +=
        static_cast<double>(traffic(plan, shape, rank).between_hosts) * size_of(DType::f32);
  }
  return *std::ranges::max_element(sent);
}

void settle_method(Recipe& recipe, const RunScenario& scenario, const std::filesystem::path& out) {
  for (const std::string& sentence : choose_method(recipe.algorithm, target_of(recipe), scenario)) {
    std::fprintf(stderr, "gossamer: %s\n", sentence.c_str());
  }
  if (!out.empty()) write_file(out / "run.toml", to_toml(recipe));
}

std::optional<RunPrediction> foresee(const Recipe& recipe, const Task& task, RunScenario scenario,
                                     const std::filesystem::path& out) {
  scenario.workload.buckets = bucket_sizes(recipe, task);  // the method has a say in them
  std::optional<RunPrediction> prediction =
      predict_run(method_of(recipe.algorithm, recipe.run.seed), scenario);
  if (prediction && !out.empty()) {
    write_file(out / "prediction.json", to_json(*prediction).dump(2) + "\n");
  }
  return prediction;
}

/// Torch has one thread per device for all backward passes of a process. One that waits there for
/// the gradients of another worker keeps that worker's pass from running.
void refuse_shared_backward(const Recipe& recipe) {
  const int workers = host_shape_of(recipe.cluster).workers();
  const c10::Device device = device_for(recipe.run.device, 0);
  const int devices = c10::Device(recipe.run.device).has_index() ? 1 : count_devices(device.type());
  if (device.is_cpu() || !recipe.algorithm.pattern->averages_first || workers <= devices) return;
  fail_argument(
      {.place = "train",
       .what = "workers that average gradients on one device must be processes",
       .got = std::to_string(workers) + " threads on " + std::to_string(devices) + " " +
              recipe.run.device,
       .remedy = "start them with a launcher, such as torchrun, or take another pattern"});
}

TrainResult run_training(Recipe& recipe, const Task& task, const TrainRunArgs& args) {
  refuse_shared_backward(recipe);
  if (recipe.algorithm.topology == kAutoTopology && recipe.cluster.gamma <= 0 &&
      recipe.cluster.link_rate.empty()) {
    fail_argument({.place = "train",
                   .what = "topology must be a name where links are not emulated",
                   .got = "'auto'",
                   .remedy = "give gamma or link_rate, or start under a launcher"});
  }
  FolderLock folder_lock = prepare_folder(recipe, task, args);
  TrainResult result{.data = task.description};
  if (!recipe.cluster.link_rate.empty())
    result.link_bytes_per_s = parse_rate(recipe.cluster.link_rate, "link_rate");
  const bool wants_compute = recipe.cluster.gamma > 0 || recipe.algorithm.topology == kAutoTopology;
  if (wants_compute && recipe.cluster.compute_ms <= 0) {
    std::fputs("gossamer: measuring the compute time of a step\n", stderr);
    recipe.cluster.compute_ms = 1e3 * measure_compute_s(recipe, task);
  }
  result.compute_ms = recipe.cluster.compute_ms;
  if (recipe.cluster.gamma > 0) {
    const std::int64_t parameters = parameter_count(make_model_for_any(recipe, task).model);
    const double bytes = allreduce_bytes_per_host(host_shape_of(recipe.cluster), parameters);
    result.link_bytes_per_s = bytes / (recipe.cluster.gamma * recipe.cluster.compute_ms / 1e3);
  }
  const bool emulate = result.link_bytes_per_s > 0;
  if (emulate && recipe.cluster.compute_ms > 0) {
    const RunScenario scenario{
        .cluster = emulated_cluster(recipe.cluster, result.link_bytes_per_s),
        .workload = {.buckets = bucket_sizes(recipe, task),
                     .compute = {.mean_s = recipe.cluster.compute_ms / 1e3}}};
    if (recipe.algorithm.topology == kAutoTopology) settle_method(recipe, scenario, args.out);
    result.prediction = foresee(recipe, task, scenario, args.out);
  }
  RunTrace trace(host_shape_of(recipe.cluster), recipe.run.trace_steps,
                 args.out.empty() ? args.out : args.out / "trace.json.gz");
  const TrainContext context{.recipe = &recipe,
                             .task = &task,
                             .out = args.out,
                             .lock = &folder_lock,
                             .resume = args.resume,
                             .trace = &trace,
                             .stop = args.stop,
                             .preempted = args.preempted,
                             .progress = args.progress};
  std::mutex mutex;
  trace.around([&] {
    run_workers(make_threads_transports(emulated_cluster(recipe.cluster, result.link_bytes_per_s),
                                        {.emulate_links = emulate}),
                [&](Transport& transport) {
                  const TrainSummary summary = train_worker(context, transport);
                  const std::lock_guard lock(mutex);
                  result.summary = summary;
                });
  });
  write_summary(recipe, result, args.out);
  return result;
}

Json summary_json(const Recipe& recipe, const TrainResult& result) {
  const TrainSummary& s = result.summary;
  const Pattern& pattern = *recipe.algorithm.pattern;
  Json json = {
      {"topology", averages_gradients(pattern) ? "complete" : full_name(recipe.algorithm.topology)},
      {"pattern", pattern.name},
      {"optimizer", recipe.optimizer.optimizer->name},
      {"workers", host_shape_of(recipe.cluster).workers()},
      {"steps", s.steps},
      {"ms_per_step", s.ms_per_step},
      {"exposed_ms", s.exposed_ms},
      {"bytes_per_host_per_step", s.bytes_per_host_per_step},
      {"val_loss", s.val_loss},
      {"disagreement", s.disagreement},
      {"seed", recipe.run.seed},
      {"val_accuracy", s.val_accuracy},
      {"train_loss", s.train_loss},
      {"parameters", s.parameters}};
  if (s.workers_left < host_shape_of(recipe.cluster).workers())
    json["workers_left"] = s.workers_left;
  if (!s.are_metrics_whole) json["metrics"] = "incomplete";
  if (s.perplexity) json["perplexity"] = *s.perplexity;
  if (result.compute_ms > 0) json["compute_ms"] = result.compute_ms;
  if (result.prediction) json["predicted_ms_per_step"] = 1e3 * result.prediction->step_s;
  if (result.link_bytes_per_s > 0) json["link_bytes_per_s"] = result.link_bytes_per_s;
  return json;
}

}  // namespace gossamer
