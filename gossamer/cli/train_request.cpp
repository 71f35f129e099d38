#include "gossamer/cli/train_request.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <iterator>

#include "gossamer/base/errors.h"
#include "gossamer/cli/options.h"
#include "gossamer/cli/train_flags.h"

namespace gossamer {
namespace {

constexpr std::string_view kTransports[] = {"auto", "threads", "net"};

}  // namespace

std::optional<TrainRequest> parse_request(const TrainCommandHelp& help,
                                          std::vector<std::string> arguments) {
  TrainRequest request;
  const std::string resume = help.can_resume ? peek_flag(arguments, "--resume") : "";
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

  CLI::App app(help.about, "gossamer " + help.name + " [RECIPE.toml]");
  app.footer(help.footer);
  std::string ignored;
  std::string out;
  app.add_flag("--json", request.json, "print one JSON object at the end");
  app.add_option("--out", out, help.out);
  if (help.can_resume) app.add_option("--resume", ignored, "continue the run in this folder");
  app.add_option("--transport", request.transport,
                 "threads, net (processes of a launcher), or auto: net where there is a launcher")
      ->capture_default_str();
  add_train_flags(app, request.spec);
  if (!parse_flags(app, help.name, arguments)) return std::nullopt;
  if (!out.empty()) request.args.out = out;
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
