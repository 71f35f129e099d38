#include "gossamer/train/run.h"

#include <torch/nn/module.h>

#include <algorithm>
#include <cstdio>
#include <mutex>

#include "gossamer/base/disk.h"
#include "gossamer/base/errors.h"
#include "gossamer/base/outside_error.h"
#include "gossamer/base/units.h"
#include "gossamer/engine/worker_threads.h"
#include "gossamer/graph/topology.h"
#include "gossamer/torch/process.h"
#include "gossamer/train/checkpoint.h"
#include "gossamer/train/default_text.h"
#include "gossamer/transport/threads.h"

namespace gossamer {
ClusterSpec emulated_cluster(const TrainSpec& spec, double link_bytes_per_s) {
  ClusterSpec cluster;
  const double rate = link_bytes_per_s > 0 ? link_bytes_per_s : LinkSpec{}.rate_bytes_per_s;
  const LinkSpec link{rate, parse_duration(spec.link_latency, "link_latency")};
  const LinkSpec inside{parse_rate(spec.inside_rate, "inside_rate"), 0};
  for (int workers : host_shape_of(spec).workers_per_host) {
    cluster.hosts.push_back({.workers = workers, .link = link, .inside = inside});
  }
  return cluster;
}

FolderLock prepare_folder(const TrainSpec& spec, const Task& task, const TrainRunArgs& args) {
  if (args.out.empty()) return {};
  std::error_code error;
  std::filesystem::create_directories(args.out, error);
  if (error) {
    fail_outside({.place = "train",
                  .what = "cannot make the folder " + args.out.string(),
                  .got = error.message()});
  }
  FolderLock lock(args.out, "a run of gossamer train", "train");
  const auto recipe = args.out / "run.toml";
  const bool was_lost = args.may_begin_again && !is_there(args.out / "summary.json");
  if (!args.resume && !was_lost && is_there(recipe)) {
    fail_argument({.place = "train",
                   .what = args.out.string() + " already holds a run",
                   .remedy = "continue it with --resume " + args.out.string() +
                             ", or choose another folder, and compare both runs with gossamer "
                             "report"});
  }
  if (args.resume) {
    checkpoint_to_resume({args.out, spec, task.content});  // before anything is replaced
    remove_traces(args.out);
  }
  write_file(recipe, to_toml(spec));
  return lock;
}

void write_summary(const TrainSpec& spec, const TrainResult& result,
                   const std::filesystem::path& out) {
  if (!out.empty()) write_file(out / "summary.json", summary_json(spec, result).dump(2) + "\n");
}

/// Before anything is read. A model of other data is refused once these are known.
void check_model(const TrainSpec& spec) {
  if (spec.model.empty()) return;
  const ModelKind& model = find_model(spec.model);
  const bool reads_images = model.input == InputKind::images;
  if (reads_images == (spec.task == "images")) check_sizes(model, sizes_of(spec));
}

Task open_task(const TrainSpec& spec) {
  check_model(spec);
  const bool default_text = spec.data.empty() && spec.task == "text";
  const std::filesystem::path path =
      default_text ? python_sources() : std::filesystem::path(spec.data);
  return find_task(spec.task).open(
      {.path = path,
       .global_batch = spec.global_batch,
       .seed = spec.seed,
       .validation_fraction = spec.validation_fraction,
       .validation_samples = spec.validation_samples,
       .pieces_per_worker = spec.pieces_per_worker,
       .augmentation = {.shift = spec.shift, .flip = spec.flip},
       .context = spec.context,
       .suffixes = spec.suffixes,
       .max_bytes = spec.max_bytes,
       .objective = spec.objective,
       .mask_share = spec.mask_share,
       .target = spec.target,
       .validation = spec.validation,
       .validation_target = spec.validation_target,
       .vocabulary = spec.vocabulary,
       .vocabulary_file = spec.vocabulary_file,
       .vocabulary_trust = spec.trusts_vocabulary ? Trust::all : Trust::sealed});
}

double measure_compute_s(const TrainSpec& spec, const Task& task) {
  constexpr std::int64_t kWarmUp = 4;
  constexpr double kLongEnough_s = 4;
  constexpr std::int64_t kMostSteps = 60;
  TrainSpec alone = spec;
  alone.topology = "complete";
  alone.pattern = "cwa";
  alone.update = "step";
  const HostShape shape = host_shape_of(spec);
  double step_s = 0;
  run_workers(make_threads_transports(emulated_cluster(spec, 0)), [&](Transport& transport) {
    use_one_torch_thread();
    const int rank = transport.describe().rank;
    TrainModel model = make_train_model(alone, task);
    TensorEngineOptions options = engine_options(alone, model);
    options.engine.schedule = alone_schedule(shape);
    const std::vector<Hyper> groups = options.engine.groups;
    TensorEngine tensors(model.tensors.trained, std::move(options), transport);
    Engine& engine = tensors.engine();
    tensors.start();
    const auto run = [&](std::int64_t steps) {
      engine.collectives().barrier();
      const auto begin = Clock::now();
      for (std::int64_t k = 0; k < steps; ++k) {
        const double loss =
            forward_backward(model, task, engine.steps_done(), {rank, shape.workers()});
        tensors.step(groups, false, loss);
        forget_gradients(model.tensors.trained);
      }
      engine.collectives().barrier();
      double seconds = std::chrono::duration<double>(Clock::now() - begin).count();
      engine.collectives().mean({&seconds, 1});
      return seconds / static_cast<double>(steps);
    };
    run(kWarmUp);
    const double rough_s = run(kWarmUp);
    const auto steps = std::clamp<std::int64_t>(static_cast<std::int64_t>(kLongEnough_s / rough_s),
                                                kWarmUp, kMostSteps);
    const double measured_s = run(steps);
    if (rank == 0) step_s = measured_s;
  });
  return step_s;
}

double allreduce_bytes_per_host(const HostShape& shape, std::int64_t parameters) {
  std::vector<double> sent(static_cast<std::size_t>(shape.hosts()), 0.0);
  for (int rank = 0; rank < shape.workers(); ++rank) {
    const Plan plan = compile(complete_round(shape.workers()), shape, rank, parameters,
                              {.group_method = GroupMethod::ring, .finished_averages = true});
    sent[static_cast<std::size_t>(shape.host_of(rank))] +=
        static_cast<double>(traffic(plan, shape, rank).between_hosts) * size_of(DType::f32);
  }
  return *std::ranges::max_element(sent);
}

/// The model as it is before a topology is chosen.
TrainModel make_model_for_any(TrainSpec spec, const Task& task) {
  if (spec.topology == kAutoTopology) spec.topology = "complete";
  return make_train_model(spec, task);
}

/// Elements of the buckets that a run of this spec has.
std::vector<std::int64_t> bucket_sizes(const TrainSpec& spec, const Task& task) {
  const TrainModel model = make_model_for_any(spec, task);
  return bucket_sizes(layout_of(model.tensors.trained, model.layout));
}

void settle_method(TrainSpec& spec, const RunScenario& scenario, const std::filesystem::path& out) {
  for (const std::string& sentence : choose_method(spec, scenario)) {
    std::fprintf(stderr, "gossamer: %s\n", sentence.c_str());
  }
  if (!out.empty()) write_file(out / "run.toml", to_toml(spec));
}

std::optional<RunPrediction> foresee(const TrainSpec& spec, const Task& task, RunScenario scenario,
                                     const std::filesystem::path& out) {
  scenario.workload.buckets = bucket_sizes(spec, task);  // the method has a say in them
  std::optional<RunPrediction> prediction = predict_run(spec, scenario);
  if (prediction && !out.empty()) {
    write_file(out / "prediction.json", to_json(*prediction).dump(2) + "\n");
  }
  return prediction;
}

TrainResult run_training(TrainSpec& spec, const Task& task, const TrainRunArgs& args) {
  if (spec.topology == kAutoTopology && spec.gamma <= 0 && spec.link_rate.empty()) {
    fail_argument({.place = "train",
                   .what = "topology must be a name where links are not emulated",
                   .got = "'auto'",
                   .remedy = "give gamma or link_rate, or start under a launcher"});
  }
  const FolderLock folder_lock = prepare_folder(spec, task, args);
  TrainResult result{.data = task.description};
  if (!spec.link_rate.empty()) result.link_bytes_per_s = parse_rate(spec.link_rate, "link_rate");
  const bool wants_compute = spec.gamma > 0 || spec.topology == kAutoTopology;
  if (wants_compute && spec.compute_ms <= 0) {
    std::fputs("gossamer: measuring the compute time of a step\n", stderr);
    spec.compute_ms = 1e3 * measure_compute_s(spec, task);
  }
  result.compute_ms = spec.compute_ms;
  if (spec.gamma > 0) {
    const std::int64_t parameters = parameter_count(make_model_for_any(spec, task).model);
    const double bytes = allreduce_bytes_per_host(host_shape_of(spec), parameters);
    result.link_bytes_per_s = bytes / (spec.gamma * spec.compute_ms / 1e3);
  }
  const bool emulate = result.link_bytes_per_s > 0;
  if (emulate && spec.compute_ms > 0) {
    const RunScenario scenario{.cluster = emulated_cluster(spec, result.link_bytes_per_s),
                               .workload = {.buckets = bucket_sizes(spec, task),
                                            .compute = {.mean_s = spec.compute_ms / 1e3}}};
    if (spec.topology == kAutoTopology) settle_method(spec, scenario, args.out);
    result.prediction = foresee(spec, task, scenario, args.out);
  }
  RunTrace trace(spec, args.out.empty() ? args.out : args.out / "trace.json.gz");
  const TrainContext context{.spec = &spec,
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
    run_workers(make_threads_transports(emulated_cluster(spec, result.link_bytes_per_s),
                                        {.emulate_links = emulate}),
                [&](Transport& transport) {
                  const TrainSummary summary = train_worker(context, transport);
                  const std::lock_guard lock(mutex);
                  result.summary = summary;
                });
  });
  write_summary(spec, result, args.out);
  return result;
}

Json summary_json(const TrainSpec& spec, const TrainResult& result) {
  const TrainSummary& s = result.summary;
  const bool allreduce = spec.pattern == "allreduce";
  Json json = {{"topology", allreduce ? "complete" : full_name(spec.topology)},
               {"pattern", spec.pattern},
               {"optimizer", spec.optimizer},
               {"workers", host_shape_of(spec).workers()},
               {"steps", s.steps},
               {"ms_per_step", s.ms_per_step},
               {"exposed_ms", s.exposed_ms},
               {"bytes_per_host_per_step", s.bytes_per_host_per_step},
               {"val_loss", s.val_loss},
               {"disagreement", s.disagreement},
               {"seed", spec.seed},
               {"val_accuracy", s.val_accuracy},
               {"train_loss", s.train_loss},
               {"parameters", s.parameters}};
  if (!s.are_metrics_whole) json["metrics"] = "incomplete";
  if (s.perplexity) json["perplexity"] = *s.perplexity;
  if (result.compute_ms > 0) json["compute_ms"] = result.compute_ms;
  if (result.prediction) json["predicted_ms_per_step"] = 1e3 * result.prediction->step_s;
  if (result.link_bytes_per_s > 0) json["link_bytes_per_s"] = result.link_bytes_per_s;
  return json;
}

}  // namespace gossamer
