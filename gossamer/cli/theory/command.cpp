#include "gossamer/cli/subcommands.h"
#include "gossamer/cli/theory/commands.h"

namespace gossamer {
namespace theory_command {

constexpr Command kTheoryCommands[] = {
    {"bound", "the convergence bound of decentralized Adam, every term of it", run_theory_bound},
    {"rates", "how far D-SGD and its variants are after T steps, term by term", run_theory_rates},
    {"transient", "from which step on they keep up with parallel SGD; topologies compared",
     run_theory_transient},
    {"speedup", "step times and speed-up over all-reduce from gamma, omega and sigma",
     run_theory_speedup},
};

}  // namespace theory_command

int run_theory(int argc, char** argv) {
  using namespace theory_command;
  return run_group({.place = "gossamer theory",
                    .about = "Published formulas of decentralized training, worked out for your "
                             "numbers.",
                    .example = "gossamer theory transient ring --hosts 16",
                    .commands = kTheoryCommands},
                   argc, argv);
}

}  // namespace gossamer
