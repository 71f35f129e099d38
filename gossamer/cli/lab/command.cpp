#include "gossamer/cli/lab/commands.h"
#include "gossamer/cli/subcommands.h"

namespace gossamer {
namespace lab_command {

constexpr Command kLabCommands[] = {
    {"figure", "make figures of decentralized optimization, as SVG or one page", run_lab_figure},
    {"run", "methods side by side on a problem: MSE, disagreement, loss", run_lab_run},
    {"transient", "steps until a method keeps up with parallel SGD, and how they grow with n",
     run_lab_transient},
};

}  // namespace lab_command

int run_lab(int argc, char** argv) {
  using namespace lab_command;
  return run_group(
      {.place = "gossamer lab",
       .about = "Virtual workers of one process on convex problems, by the rules that train "
                "networks.",
       .example = "gossamer lab figure corrections_least_squares",
       .commands = kLabCommands},
      argc, argv);
}

}  // namespace gossamer
