#pragma once
/// The flags of the commands that need libtorch, without libtorch: so their help comes at once.

#include <cstdint>
#include <string>
#include <string_view>

#include "gossamer/cli/page.h"
#include "gossamer/recipe/recipe.h"

namespace gossamer {

/// How a command that trains presents itself.
struct TrainCommandHelp {
  std::string_view name;  ///< after `gossamer`
  std::string_view about;
  std::string_view footer;
  std::string_view out;     ///< of the flag --out
  bool can_resume = false;  ///< it has the flags --resume and --auto-resume
};

extern const TrainCommandHelp kTrainHelp;
extern const TrainCommandHelp kProbeHelp;

/// What --transport takes.
inline constexpr std::string_view kTransports[] = {"auto", "threads", "net"};

/// What `train` and `probe` read beside the fields of a recipe.
struct TrainLine {
  bool json = false;
  std::string out;
  std::string resume;
  bool auto_resume = false;
  std::string transport = "auto";
};

/// Their flags, those of the recipe included.
void add_request_flags(CLI::App& app, const TrainCommandHelp& help, TrainLine& line,
                       Recipe& recipe);

struct DemoLine {
  Recipe base;  ///< see Note [The demo's settings]
  double gossip_lr = 4e-3;
  bool json = false;
};

/// Sets the demo's defaults and adds its flags.
void add_demo_flags(CLI::App& app, DemoLine& line);

struct TranslateLine {
  std::string run;
  std::string input;
  std::string output;
  bool trusts_vocabulary = false;
  int beam = 1;
  double length_power = 1;
  std::int64_t batch = 64;
};

void add_translate_flags(CLI::App& app, TranslateLine& line);

/// The page of train, probe, demo or translate.
CommandPage train_page(std::string_view command);

}  // namespace gossamer
