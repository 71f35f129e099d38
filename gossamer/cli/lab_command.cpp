#include <string_view>
#include <vector>

#include "gossamer/base/errors.h"
#include "gossamer/cli/commands.h"
#include "gossamer/cli/lab_commands.h"

namespace gossamer {
namespace {

constexpr Command kLabCommands[] = {
    {"figure", "make figures of decentralized optimization, as SVG or one page", run_lab_figure},
    {"run", "methods side by side on a problem: MSE, disagreement, loss", run_lab_run},
    {"transient", "steps until a method keeps up with parallel SGD, and how they grow with n",
     run_lab_transient},
};

CommandPage lab_page() {
  CommandPage page{.name = "lab",
                   .about =
                       "Virtual workers of one process on convex problems, by the rules that "
                       "train networks.",
                   .footer = "try: gossamer lab figure corrections_least_squares"};
  for (const Command& command : kLabCommands) {
    page.commands.emplace_back(command.name, command.summary);
  }
  return page;
}

}  // namespace

int run_lab(int argc, char** argv) {
  const std::string_view word = argc > 1 ? argv[1] : "--help";
  if (word == "--help" || word == "-h" || word == "help") throw HelpAsked{lab_page()};
  std::vector<std::string_view> names;
  for (const Command& command : kLabCommands) {
    if (command.name == word) return command.run(argc - 1, argv + 1);
    names.push_back(command.name);
  }
  fail_unknown_name("gossamer lab", "command", word, names);
}

}  // namespace gossamer
