#include "gossamer/cli/train_request.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <iterator>

#include "gossamer/base/errors.h"
#include "gossamer/cli/options.h"
#include "gossamer/cli/train_checkpoint.h"
#include "gossamer/cli/train_flags.h"

namespace gossamer {
namespace {

constexpr std::string_view kTransports[] = {"auto", "threads", "net"};
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

}  // namespace

std::optional<TrainRequest> parse_request(const TrainCommandHelp& help,
                                          std::vector<std::string> arguments) {
  TrainRequest request;
  std::string resume = help.can_resume ? peek_flag(arguments, "--resume") : "";
  if (help.can_resume && resume.empty() && std::ranges::count(arguments, kAutoResume) > 0) {
    request.args.may_begin_again = true;
    resume = run_to_go_on_with(arguments);
  }
  const bool has_recipe = !arguments.empty() && !arguments.front().starts_with("-");
  const std::string recipe = has_recipe ? arguments.front() : "";
  if (has_recipe) arguments.erase(arguments.begin());
  if (!resume.empty()) {
    request.args.out = resume;
    request.args.resume = true;
    read_recipe((request.args.out / "run.toml").string(), request.spec);
  } else if (has_recipe) {
    read_recipe(recipe, request.spec);
  }

  const std::string settled = request.spec.topology;
  CLI::App app(help.about, "gossamer " + help.name + " [RECIPE.toml]");
  app.footer(help.footer);
  std::string ignored;
  std::string out;
  app.add_flag("--json", request.json, "print one JSON object at the end");
  app.add_option("--out", out, help.out);
  bool also_ignored = false;
  if (help.can_resume) {
    app.add_option("--resume", ignored, "continue the run in this folder");
    app.add_flag(std::string(kAutoResume), also_ignored,
                 "continue the run in the folder of --out if there is a checkpoint, else begin it");
  }
  app.add_option("--transport", request.transport,
                 "threads, net (processes of a launcher), or auto: net where there is a launcher")
      ->capture_default_str();
  add_train_flags(app, request.spec);
  if (!parse_flags(app, help.name, arguments)) return std::nullopt;
  if (!resume.empty() && !out.empty()) check_same_folder(resume, out);
  if (!out.empty()) request.args.out = out;
  if (request.args.resume && request.spec.topology == kAutoTopology) {
    request.spec.topology = settled;  // as it was chosen when the run began
  }
  request.says_hosts =
      !peek_flag(arguments, "--hosts").empty() || !peek_flag(arguments, "--per-host").empty();
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

void check_hosts(const std::string& command, const TrainSpec& asked, const TrainSpec& given,
                 const LauncherEnv& env) {
  const HostShape shape = host_shape_of(given);
  if (host_shape_of(asked).workers_per_host == shape.workers_per_host) return;
  fail_argument({.place = command,
                 .what = "hosts and per_host must be what " + std::string(name_of(env.launcher)) +
                         " has started, " + describe(shape),
                 .got = describe(host_shape_of(asked)),
                 .remedy = "leave --hosts and --per-host out, or use --transport threads"});
}

}  // namespace gossamer
