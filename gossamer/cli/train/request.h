#pragma once
/// What a command that trains is asked for on its command line.

#include <optional>
#include <string>
#include <vector>

#include "gossamer/cli/train_help.h"
#include "gossamer/recipe/launcher_env.h"
#include "gossamer/recipe/recipe.h"
#include "gossamer/train/run.h"

namespace gossamer {

struct TrainRequest {
  Recipe recipe;
  TrainRunArgs args;
  std::string transport = "auto";
  bool json = false;
  bool says_hosts = false;  ///< by a flag, which a launcher must not contradict
  /// Of a sweep: a run for each. Otherwise empty, and the recipe has the only one.
  std::vector<double> gammas = {};
};

/// Throws std::invalid_argument, and HelpAsked for --help.
TrainRequest parse_request(const TrainCommandHelp& help, std::vector<std::string> arguments);

/// The launcher to work under, if any. Throws std::invalid_argument for an unknown transport, and
/// where it needs a launcher and there is none.
std::optional<LauncherEnv> launcher_for(const std::string& command, const std::string& transport);

}  // namespace gossamer
