#pragma once
/// The table of subcommands.

#include <span>
#include <string_view>
#include <vector>

#include "gossamer/cli/page.h"

namespace gossamer {

/// Exit codes: 0 done, 1 the outside world failed, 2 the command line or a file that it names is
/// wrong, 3 a gradient was not finite, 4 another worker or the link to it is lost, 128 + a signal.
constexpr int kExitFailed = 1;
constexpr int kExitUsage = 2;
constexpr int kExitDiverged = 3;
constexpr int kExitPeersLost = 4;
constexpr int kExitSignal = 128;

/// argv[0] is the subcommand's name. `run` returns the exit code and may throw; it throws HelpAsked
/// where argv[1] is --help.
struct Command {
  std::string_view name;
  std::string_view summary;
  int (*run)(int argc, char** argv);
};

int run_topology(int argc, char** argv);
int run_simulate(int argc, char** argv);
int run_plan(int argc, char** argv);
int run_lab(int argc, char** argv);
int run_theory(int argc, char** argv);
/// These hand over to the program gossamer-train beside this one, with all arguments.
int run_train(int argc, char** argv);
int run_demo(int argc, char** argv);
int run_probe(int argc, char** argv);
int run_translate(int argc, char** argv);
/// These hand over to the Python package's command of the same name.
int run_report(int argc, char** argv);
int run_doctor(int argc, char** argv);
int run_launch(int argc, char** argv);
int run_completion(int argc, char** argv);
int run_man(int argc, char** argv);

/// All of them, in the order of the help.
std::span<const Command> commands();

/// The page of the program, then those of all commands, those of `lab` included.
std::vector<CommandPage> all_pages();

/// Parses the first word and runs its command; errors become a message on stderr and an exit code.
int run_cli(int argc, char** argv);

}  // namespace gossamer
