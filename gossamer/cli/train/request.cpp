#include "gossamer/cli/train/request.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <iterator>

#include "gossamer/base/errors.h"
#include "gossamer/cli/command_line.h"
#include "gossamer/cli/train_flags.h"
#include "gossamer/recipe/file.h"
#include "gossamer/recipe/host_shape.h"
#include "gossamer/train/checkpoint.h"

namespace gossamer {
namespace {

constexpr std::string_view kAutoResume = "--auto-resume";

/// The run that a command with --auto-resume goes on with; empty where it begins one.
std::string run_to_go_on_with(const std::vector<std::string>& arguments) {
  const std::string out = peek_flag(arguments, "--out");
  if (out.empty()) {
    fail_argument({.place = "train",
                   .what = "--auto-resume needs the folder of the run",
                   .remedy = "add --out FOLDER"});
  }
  return has_checkpoint(out) ? out : "";
}

/// A run goes on in its own folder, whose name may be written in several ways.
void check_same_folder(const std::filesystem::path& resume, const std::filesystem::path& out) {
  std::error_code error;
  if (resume == out || std::filesystem::equivalent(resume, out, error)) return;
  fail_argument({.place = "train",
                 .what = "a run goes on in its own folder, " + resume.string(),
                 .got = "--out " + out.string(),
                 .remedy = "leave --out out; for another folder copy the run there first, and "
                           "resume the copy"});
}

void check_is_run(const std::string& folder) {
  std::error_code error;
  if (std::filesystem::exists(std::filesystem::path(folder) / "run.toml", error)) return;
  const bool is_there = std::filesystem::exists(folder, error);
  fail_argument({.place = "train",
                 .what = "--resume needs the folder of a run",
                 .got = folder + (is_there ? ", which has no run.toml" : ", which does not exist"),
                 .remedy = "name a folder that `gossamer train --out FOLDER` has written"});
}

/// A tenth of the run may be lost, but checkpoints do not come thick and fast in short runs.
void settle_checkpoints(TrainRequest& request) {
  constexpr std::int64_t kLeast = 50;
  constexpr std::int64_t kPerRun = 10;
  std::int64_t& every = request.recipe.run.checkpoint_every;
  if (every > 0 && request.args.out.empty()) {
    fail_argument({.place = "train",
                   .what = "checkpoint_every needs a run folder",
                   .got = std::to_string(every),
                   .remedy = "add --out FOLDER"});
  }
  if (every != kUsualCheckpoints) return;
  every = request.args.out.empty() ? 0 : std::max(kLeast, request.recipe.run.steps / kPerRun);
}

/// The values of --gamma where there are several.
std::vector<double> sweep_of(const std::vector<std::string>& arguments,
                             const TrainRequest& request) {
  std::vector<double> gammas;
  for (const std::string& text : values_of_flag(arguments, "--gamma")) {
    char* end = nullptr;
    const double gamma = std::strtod(text.c_str(), &end);
    if (text.empty() || *end != '\0' || !std::isfinite(gamma) || gamma < 0) {
      fail_argument({.place = "train",
                     .what = "gamma must be finite and not negative",
                     .got = "'" + text + "'"});
    }
    if (std::ranges::find(gammas, gamma) == gammas.end()) gammas.push_back(gamma);
  }
  if (gammas.size() < 2) return {};
  if (request.args.resume || request.args.may_begin_again) {
    fail_argument({.place = "train",
                   .what = "a run that goes on has one gamma",
                   .got = std::to_string(gammas.size()) + " of them",
                   .remedy = "resume each run of a sweep by its own folder"});
  }
  return gammas;
}

}  // namespace

TrainRequest parse_request(const TrainCommandHelp& help, std::vector<std::string> arguments) {
  TrainRequest request;
  std::string resume = help.can_resume ? peek_flag(arguments, "--resume") : "";
  if (help.can_resume && resume.empty() && std::ranges::count(arguments, kAutoResume) > 0) {
    request.args.may_begin_again = true;
    resume = run_to_go_on_with(arguments);
  }
  const bool has_recipe = !arguments.empty() && !arguments.front().starts_with("-");
  const std::string file = has_recipe ? arguments.front() : "";
  if (has_recipe) arguments.erase(arguments.begin());
  if (!resume.empty()) {
    // What Gossip.save has saved there has no recipe of its own.
    const bool is_run = std::filesystem::exists(std::filesystem::path(resume) / "run.toml");
    if (!request.args.may_begin_again) check_is_run(resume);
    request.args.out = resume;
    request.args.resume = true;
    if (is_run) read_recipe((request.args.out / "run.toml").string(), request.recipe);
    if (!is_run && has_recipe) read_recipe(file, request.recipe);
  } else if (has_recipe) {
    read_recipe(file, request.recipe);
  }

  std::string& topology = request.recipe.algorithm.topology;
  const std::string settled = topology;
  CLI::App app(std::string(help.about));
  TrainLine line;
  add_request_flags(app, help, line, request.recipe);
  parse_arguments(app, std::string(help.name), arguments);
  if (!resume.empty() && !line.out.empty()) check_same_folder(resume, line.out);
  if (!line.out.empty()) request.args.out = line.out;
  if (request.args.resume && topology == kAutoTopology) {
    topology = settled;  // as it was chosen when the run began
  }
  request.json = line.json;
  request.transport = line.transport;
  const bool says_hosts = !peek_flag(arguments, "--hosts").empty();
  if (says_hosts) {
    const ClusterSection& cluster = request.recipe.cluster;
    host_shape_of(cluster.hosts, cluster.hosts, cluster.per_host, std::string(help.name));
  }
  request.says_hosts = says_hosts || !peek_flag(arguments, "--per-host").empty();
  if (help.can_resume) {
    settle_checkpoints(request);
    request.gammas = sweep_of(arguments, request);
  } else if (request.recipe.run.checkpoint_every == kUsualCheckpoints) {
    request.recipe.run.checkpoint_every = 0;
  }
  return request;
}

std::optional<LauncherEnv> launcher_for(const std::string& command, const std::string& transport) {
  if (std::ranges::find(kTransports, transport) == std::end(kTransports)) {
    fail_unknown_name(command, "transport", transport, kTransports);
  }
  if (transport == "threads") return std::nullopt;
  auto env = find_launcher(environment_variable);
  if (!env && transport == "net") {
    fail_argument({.place = command,
                   .what = "the transport net is between processes that a launcher starts",
                   .got = "none of the variables of torchrun, mpirun or srun",
                   .remedy = "start with torchrun --no-python --nproc-per-node=4 gossamer " +
                             command + " ..., or use --transport threads"});
  }
  return env;
}

}  // namespace gossamer
