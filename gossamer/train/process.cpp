#include "gossamer/train/process.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <string>
#include <thread>
#include <vector>

#include "gossamer/base/disk.h"
#include "gossamer/base/errors.h"
#include "gossamer/base/outside_error.h"
#include "gossamer/engine/options.h"
#include "gossamer/engine/tags.h"
#include "gossamer/graph/schedule_file.h"
#include "gossamer/recipe/fields.h"
#include "gossamer/recipe/file.h"
#include "gossamer/recipe/host_shape.h"
#include "gossamer/train/checkpoint.h"
#include "gossamer/train/last_words.h"
#include "gossamer/train/probe.h"

namespace gossamer {
namespace {

using namespace std::chrono_literals;

constexpr auto kLookAgain = 10ms;
// Network file systems show a new file late.
constexpr auto kFileIsThere = 10s;
constexpr auto kTryAgain = 500ms;

void refuse_emulation(const ClusterSection& cluster, const TrainJob& job) {
  const ClusterSection plain;
  const std::pair<const char*, bool> asked[] = {
      {"gamma", cluster.gamma != plain.gamma},
      {"link_rate", cluster.link_rate != plain.link_rate},
      {"link_latency", cluster.link_latency != plain.link_latency},
      {"inside_rate", cluster.inside_rate != plain.inside_rate},
      {"compute_ms", cluster.compute_ms != plain.compute_ms}};
  for (const auto& [name, is_asked] : asked) {
    if (!is_asked) continue;
    fail_argument({.place = "train",
                   .what = "links are emulated only between threads of one process",
                   .got = std::string(name) + " under " + std::string(name_of(job.env().launcher)),
                   .remedy = "leave it out, or start without a launcher (--transport threads)"});
  }
}

void find_folder(const std::filesystem::path& out) {
  const auto limit = Clock::now() + kFileIsThere;
  while (!is_there(out / "run.toml")) {
    if (Clock::now() > limit) {
      fail_io({.place = "train",
               .what = out.string() + " is not the folder that rank 0 writes to",
               .got = "no run.toml in it",
               .remedy = "give a folder that all hosts share"});
    }
    std::this_thread::sleep_for(kLookAgain);
  }
}

/// What the workers do, whenever they begin.
std::string what_all_do(const Recipe& recipe, const Task& task, const TrainRunArgs& args) {
  const std::string folder = args.out.empty() ? "none" : args.out.string();
  return shared_words(recipe, task) + "\nfolder: " + folder;
}

/// Everything that must be alike for the workers to train the same thing.
std::string agreement(const Recipe& recipe, const Task& task, const TrainRunArgs& args,
                      const TrainJob& job) {
  std::string text = what_all_do(recipe, task, args);
  if (args.resume && !job.comes_back()) {
    text += "\ncheckpoint: " +
            checkpoint_to_resume({args.out, recipe, task.content}).filename().string();
  }
  return text;
}

/// What it returns is to be held as long as the run uses the folder.
FolderLock prepare(const Recipe& recipe, const Task& task, const TrainRunArgs& args,
                   TrainJob& job) {
  FolderLock lock;
  job.together("prepare the run", [&] {
    const bool makes_it = job.rank() == 0 && !job.comes_back();
    if (makes_it) lock = prepare_folder(recipe, task, args);
  });
  std::string words;
  job.together("see the run folder", [&] {
    if (!args.out.empty()) find_folder(args.out);
    words = agreement(recipe, task, args, job);
  });
  job.require_same(words);
  return lock;
}

/// Where losing somebody is no error, what fails is about this worker alone.
[[noreturn]] void rethrow_alone(const TransportError& error, const std::atomic<bool>* stop) {
  if (stop != nullptr && *stop) throw Interrupted("interrupted");
  throw error;
}

/// Hosts that were asked for must be those that the launcher has started.
void check_hosts(const std::string& command, const ClusterSection& asked, const TrainJob& job) {
  const HostShape shape = host_shape_of(asked);
  if (shape.workers_per_host == job.shape().workers_per_host) return;
  fail_argument({.place = command,
                 .what = "hosts and per_host must be what " +
                         std::string(name_of(job.env().launcher)) + " has started, " +
                         describe(job.shape()),
                 .got = describe(shape),
                 .remedy = "leave --hosts and --per-host out, or use --transport threads"});
}

/// Takes rank 0's choice. Collective.
void take_choice(Recipe& recipe, Transport& transport) {
  ExchangeRunner runner(transport, recipe.run.timeout_s);
  Collectives collectives(runner, {host_shape_of(recipe.cluster), transport.describe().rank},
                          kFirstCallOfTraining);
  std::string choice = to_toml(recipe);
  collectives.broadcast(choice);
  read_recipe_text(choice, "rank 0's choice", recipe);
}

/// Chooses a method for what the job's own links and workers are measured to do.
std::optional<RunPrediction> settle_together(Recipe& recipe, const Task& task,
                                             const TrainRunArgs& args, Transport& transport) {
  const bool speaks = transport.describe().rank == 0;
  if (speaks) std::fputs("gossamer: topology auto: measuring links and compute\n", stderr);
  const ProbedJob probed =
      probe_worker({.recipe = &recipe, .task = &task, .stop = args.stop}, transport);
  const RunScenario scenario{.cluster = probed.cluster.cluster,
                             .workload = workload_on(probed.workload, probed.cluster)};
  std::optional<RunPrediction> prediction;
  if (speaks) {
    settle_method(recipe, scenario, args.out);
    prediction = foresee(recipe, task, scenario, args.out);
  }
  take_choice(recipe, transport);
  return prediction;
}

/// All others, those of its own host first.
std::vector<int> others_of(const TrainJob& job) {
  std::vector<int> others;
  for (int rank = 0; rank < job.workers(); ++rank) {
    if (rank != job.rank()) others.push_back(rank);
  }
  const int host = job.shape().host_of(job.rank());
  std::ranges::stable_partition(others,
                                [&](int rank) { return job.shape().host_of(rank) == host; });
  return others;
}

/// Where nobody is left to whom a worker could come back.
void refuse_where_all_is_over(const TrainJob& job) {
  const std::string who = "[train] rank " + std::to_string(job.rank()) + " comes back, but ";
  if (const auto finished = job.members()->who_has_finished()) {
    throw OutsideError(who + "rank " + std::to_string(*finished) +
                       " has finished, so the job is over; nothing is left to do");
  }
  if (job.members()->nobody_has_state(job.workers())) {
    throw OutsideError(who +
                       "no other worker has the state of the run any more; start the job "
                       "again, with --resume where it has saved checkpoints");
  }
}

/// A worker that comes back, with the state of one that is there. Where nobody can be reached it
/// tries again until the limit, unless the job is over.
std::unique_ptr<ComingBack> come_back(TrainJob& job, const ConnectOptions& links, double timeout_s,
                                      Deadline limit, std::unique_ptr<Transport>& transport) {
  for (bool has_said = false;; has_said = true) {
    transport = job.connect(links);
    try {
      std::unique_ptr<ComingBack> back(
          new ComingBack{.arrival = Arrival(*transport, others_of(job), timeout_s, nullptr)});
      back->state = back->arrival.take_state();
      back->on_start = [&job] { job.say_state(); };
      return back;
    } catch (const TransportError& error) {
      refuse_where_all_is_over(job);
      if (Clock::now() > limit) throw;
      if (!has_said) std::fprintf(stderr, "gossamer: %s; it tries again\n", error.what());
    }
    transport.reset();
    std::this_thread::sleep_for(kTryAgain);
  }
}

/// To what a worker cannot come back.
void check_return(const Recipe& recipe) {
  const bool is_auto = recipe.algorithm.topology == kAutoTopology;
  if (!is_auto && recipe.algorithm.late == Late::wait) return;
  fail_argument({.place = "train",
                 .what = "a worker comes back to a named topology whose workers wait",
                 .got = is_auto ? "topology = auto" : "late = skip",
                 .remedy = "start the whole job again, or give it such a recipe"});
}

}  // namespace

std::string shared_words(const Recipe& recipe, const Task& task) {
  Recipe copy = recipe;
  for (const RecipeField& field : recipe_fields(copy)) {
    if (is_data_path(field.key)) std::get<std::string*>(field.target)->clear();
  }
  std::string weights;
  if (is_schedule_file(recipe.algorithm.topology)) {
    const MethodSpec method = method_of(recipe.algorithm, recipe.run.seed);
    weights =
        "weights of W: " + make_schedule(method.schedule, host_shape_of(recipe.cluster)).name +
        "\n";
  }
  return to_toml(copy) + weights + "content of the data: " + task.content;
}

Task begin_process(Recipe& recipe, TrainJob& job, const BeginOptions& options) {
  const ClusterSection asked = recipe.cluster;
  Task task;
  refuse_emulation(recipe.cluster, job);
  set_hosts(recipe.cluster, job.shape());  // the launcher's
  job.together("begin", [&] {
    if (options.hosts_are_asked) check_hosts(options.command, asked, job);
    check_recipe(recipe);
    task = open_task(recipe);
  });
  return task;
}

namespace {

/// Of one try to come back, or of the only one of a worker that begins with the others.
TrainResult run_over(Transport& transport, Recipe& recipe, TrainContext context,
                     const TrainRunArgs& args) {
  TrainResult result{.data = context.task->description};
  const int rank = transport.describe().rank;
  RunTrace trace(host_shape_of(recipe.cluster), recipe.run.trace_steps,
                 args.out.empty() ? args.out : trace_file_of(args.out, rank));
  context.trace = &trace;
  try {
    if (recipe.algorithm.topology == kAutoTopology) {
      result.prediction = settle_together(recipe, *context.task, args, transport);
    }
    trace.around([&] { result.summary = train_worker(context, transport); });
  } catch (const StartMissed&) {
    throw;
  } catch (const TransportError& error) {
    if (recipe.algorithm.lost == Lost::go_on) rethrow_alone(error, args.stop);
    throw_last_words(error, transport, args.stop);
  }
  if (rank == result.summary.speaker) write_summary(recipe, result, args.out);
  return result;
}

/// As often as it takes until the others let it begin in a step, within the recipe's timeout_s.
TrainResult run_back(TrainJob& job, const ConnectOptions& links, Recipe& recipe,
                     TrainContext context, const TrainRunArgs& args) {
  const double timeout_s = recipe.run.timeout_s;
  const Deadline limit = deadline_after(timeout_s);
  for (;;) {
    std::unique_ptr<Transport> transport;
    const auto back = come_back(job, links, timeout_s, limit, transport);
    context.back = back.get();
    try {
      return run_over(*transport, recipe, context, args);
    } catch (const StartMissed& error) {
      if (Clock::now() > limit) throw;
      std::fprintf(stderr, "gossamer: %s; it tries again\n", error.what());
    }
  }
}

}  // namespace

TrainResult run_process(Recipe& recipe, const Task& task, const TrainRunArgs& asked,
                        TrainJob& job) {
  TrainRunArgs args = asked;
  ConnectOptions links{.tls = recipe.cluster.tls};
  const bool goes_on = recipe.algorithm.lost == Lost::go_on;
  if (goes_on) args.job = job.word();  // whoever goes on takes the folder of one that was lost
  FolderLock folder_lock = prepare(recipe, task, args, job);
  if (goes_on) {
    links.longest_silence = std::chrono::duration<double>(recipe.run.suspect_s);
    links.least_heard = 0;
    links.about = what_all_do(recipe, task, args);
  }
  const TrainContext context{.recipe = &recipe,
                             .task = &task,
                             .out = args.out,
                             .lock = &folder_lock,
                             .job = args.job,
                             .resume = args.resume,
                             .stop = args.stop,
                             .preempted = args.preempted,
                             .progress = args.progress};
  if (job.comes_back()) {
    check_return(recipe);
    return run_back(job, links, recipe, context, args);
  }
  return run_over(*job.connect(links), recipe, context, args);
}

}  // namespace gossamer
