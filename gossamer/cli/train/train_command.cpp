#include <cstdio>
#include <filesystem>
#include <functional>
#include <iostream>
#include <optional>
#include <sstream>

#include "gossamer/base/errors.h"
#include "gossamer/base/units.h"
#include "gossamer/cli/progress.h"
#include "gossamer/cli/train/commands.h"
#include "gossamer/cli/train/request.h"
#include "gossamer/recipe/host_shape.h"
#include "gossamer/train/checkpoint.h"
#include "gossamer/train/interrupt.h"
#include "gossamer/train/process.h"

namespace gossamer {
namespace {

std::string number(const char* format, double value) {
  char text[64];
  std::snprintf(text, sizeof text, format, value);
  return text;
}

void row(std::ostream& out, const char* name, const std::string& value) {
  out << "  " << name << std::string(24 - std::string_view(name).size(), ' ') << value << '\n';
}

std::string to_text(const Recipe& recipe, const TrainResult& result) {
  const TrainSummary& s = result.summary;
  const Json json = summary_json(recipe, result);
  std::ostringstream out;
  out << json["pattern"].get<std::string>() << " on " << json["topology"].get<std::string>() << ", "
      << json["workers"] << " workers, " << recipe.optimizer.optimizer->name << ", " << s.parameters
      << " parameters\n";
  row(out, "steps", std::to_string(s.steps));
  if (json.contains("workers_left")) {
    row(out, "workers left", json["workers_left"].dump() + " of " + json["workers"].dump());
  }
  row(out, "time per step", number("%.1f ms", s.ms_per_step));
  row(out, "exposed communication", number("%.1f ms", s.exposed_ms));
  row(out, "sent per host and step", format_bytes(s.bytes_per_host_per_step));
  row(out, "validation loss", number("%.4f", s.val_loss));
  if (s.perplexity) row(out, "perplexity", number("%.2f", *s.perplexity));
  row(out, "validation accuracy", number("%.2f %%", 100 * s.val_accuracy));
  row(out, "disagreement", number("%.5f", s.disagreement));
  if (result.link_bytes_per_s > 0) {
    row(out, "emulated links", format_rate(result.link_bytes_per_s));
  }
  if (result.compute_ms > 0) row(out, "compute per step", number("%.1f ms", result.compute_ms));
  if (result.prediction) {
    row(out, "predicted per step", number("%.1f ms", 1e3 * result.prediction->step_s));
  }
  return out.str();
}

bool can_go_on(const std::filesystem::path& out) {
  try {
    return has_checkpoint(out);
  } catch (const IoError&) {
    return false;  // whoever resumes it is told why
  }
}

std::string farewell(const std::filesystem::path& out) {
  const std::string folder = out.string();
  if (out.empty()) return "stopped; nothing was written, because there was no --out FOLDER";
  if (can_go_on(out)) {
    return "stopped; continue from the last checkpoint with: gossamer train --resume " + folder;
  }
  return "stopped before the first checkpoint, so there is nothing to continue; give the same "
         "command with --auto-resume to begin again in " +
         folder + ", and checkpoint_every for an earlier one";
}

/// Runs `work`, with signals and a line of progress for it.
TrainResult watched(const TrainRequest& request, bool speaks,
                    const std::function<TrainResult(const TrainRunArgs&)>& work) {
  const Recipe& recipe = request.recipe;
  const bool saves = !request.args.out.empty() && recipe.run.checkpoint_every != 0;
  const InterruptGuard guard([&] { return speaks ? farewell(request.args.out) : ""; },
                             saves ? recipe.run.grace_s : 0);
  const Pattern& pattern = *recipe.algorithm.pattern;
  ProgressLine line(
      averages_gradients(pattern) ? std::string(pattern.name) : recipe.algorithm.topology,
      recipe.run.steps);
  TrainRunArgs args = request.args;
  args.stop = &guard.stop();
  if (saves && recipe.run.grace_s > 0) args.preempted = &guard.preempted();
  args.progress = [&line](std::int64_t step, double loss, double step_s) {
    line.show(step, loss, step_s);
  };
  try {
    return work(args);
  } catch (const Interrupted& stopped) {
    throw Interrupted(speaks ? std::string(stopped.what()) + "; " + farewell(args.out) : "",
                      stopped.signal());
  }
}

TrainResult train_with_threads(TrainRequest& request) {
  check_recipe(request.recipe);
  const Task task = open_task(request.recipe);
  std::cerr << "gossamer: " << task.description << '\n';
  return watched(request, true, [&](const TrainRunArgs& args) {
    return run_training(request.recipe, task, args);
  });
}

/// Where those that are lost find the others again, if they may come back.
std::optional<Members> members_of(const Recipe& recipe) {
  auto members = Members::of(environment_variable);
  const bool may_come_back = recipe.algorithm.lost == Lost::go_on;
  if (members && members->comes_back() && !may_come_back) {
    fail_argument({.place = "train",
                   .what = "this worker was started again, but the others do not go on without it",
                   .got = "lost = error",
                   .remedy = "use --lost go_on, or start the whole job again"});
  }
  return may_come_back ? members : std::nullopt;
}

/// The start waits for all.
void refuse_a_part(const LauncherEnv& env) {
  const auto begin = environment_variable("GOSSAMER_BEGIN");
  if (!begin || *begin == std::to_string(env.workers)) return;
  fail_argument({.place = "train",
                 .what = "all workers begin together",
                 .got = *begin + " of " + std::to_string(env.workers) + " by --begin",
                 .remedy = "leave --begin out"});
}

/// As one process of several; `request.recipe` gets the launcher's hosts.
TrainResult train_as_process(TrainRequest& request, const LauncherEnv& env) {
  refuse_a_part(env);
  const bool speaks = env.rank == 0;
  return watched(request, speaks, [&](const TrainRunArgs& args) {
    TrainJob job(env, request.recipe.run.timeout_s, members_of(request.recipe));
    const Task task = begin_process(request.recipe, job, {"train", request.says_hosts});
    if (job.comes_back()) {
      std::cerr << "gossamer: worker " << env.rank << " comes back\n";
    } else if (speaks) {
      std::cerr << "gossamer: " << task.description << "\ngossamer: " << name_of(env.launcher)
                << " has started " << describe(job.shape()) << '\n';
    }
    return run_process(request.recipe, task, args, job);
  });
}

/// True for the process that speaks for the run.
bool train_and_print(TrainRequest& request) {
  const auto env = launcher_for("train", request.transport);
  const TrainResult result = env ? train_as_process(request, *env) : train_with_threads(request);
  if (env && env->rank != result.summary.speaker) return false;
  std::cout << (request.json ? summary_json(request.recipe, result).dump() + "\n"
                             : to_text(request.recipe, result))
            << std::flush;
  return true;
}

/// A run per gamma, on links for one and the same compute time.
void sweep(const TrainRequest& request) {
  std::string folders;
  double compute_ms = request.recipe.cluster.compute_ms;
  for (const double gamma : request.gammas) {
    TrainRequest one = request;
    one.recipe.cluster.gamma = gamma;
    one.recipe.cluster.compute_ms = compute_ms;
    if (!one.args.out.empty()) {
      one.args.out /= "gamma-" + shortest(gamma);
      folders += " " + one.args.out.string();
    }
    std::cerr << "gossamer: gamma " << shortest(gamma) << '\n';
    if (!train_and_print(one)) return;
    compute_ms = one.recipe.cluster.compute_ms;
  }
  if (!folders.empty()) std::cerr << "gossamer: compare with: gossamer report" << folders << '\n';
}

}  // namespace

int train_command(int argc, char** argv) {
  TrainRequest request = parse_request(kTrainHelp, {argv + 1, argv + argc});
  if (request.gammas.empty()) {
    train_and_print(request);
  } else {
    sweep(request);
  }
  return 0;
}

}  // namespace gossamer
