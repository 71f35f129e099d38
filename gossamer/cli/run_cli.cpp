#include <cstdio>
#include <exception>
#include <stdexcept>
#include <string_view>

#include "gossamer/cli/commands.h"
#include "gossamer/cli/subcommands.h"

#ifndef GOSSAMER_VERSION
#error "GOSSAMER_VERSION comes from the build"
#endif

namespace gossamer {
namespace {

constexpr Command kCommands[] = {
    {"topology", "print a topology: rounds, traffic, contraction; as table, JSON or picture",
     run_topology},
    {"simulate", "how long steps take on a cluster: methods side by side, without running them",
     run_simulate},
    {"plan", "which way to train is fastest on a cluster, and whether gossip pays at all",
     run_plan},
    {"probe", "measure links and compute times under a launcher, for simulate and plan", run_probe},
    {"train", "train a model, its workers as threads on free or emulated links", run_train},
    {"translate", "translate text with a model that train has left", run_translate},
    {"demo", "a decentralized run beside all-reduce on an emulated slow network", run_demo},
    {"lab", "thousands of virtual workers on convex problems: methods, figures", run_lab},
    {"theory", "published bounds, rates and speed-ups, worked out for your numbers", run_theory},
    {"report", "make one offline HTML file about runs; needs Python with matplotlib and Jinja2",
     run_report},
};

void print_help() {
  std::printf(
      "Gossamer trains neural networks data-parallel without a global all-reduce.\n\n"
      "usage: gossamer COMMAND [OPTIONS]\n\ncommands:\n");
  print_commands(kCommands);
  std::printf(
      "\n  --help     this text; `gossamer COMMAND --help` for a command\n"
      "  --version  the version\n\n"
      "try: gossamer topology aer --hosts 4 --per-host 2\n");
}

int dispatch(int argc, char** argv) {
  const std::string_view word = argc > 1 ? argv[1] : "--help";
  if (word == "--help" || word == "-h" || word == "help") {
    print_help();
    return 0;
  }
  if (word == "--version") {
    std::puts("gossamer " GOSSAMER_VERSION);
    return 0;
  }
  return find_command("gossamer", word, kCommands).run(argc - 1, argv + 1);
}

}  // namespace

int run_cli(int argc, char** argv) {
  try {
    const int code = dispatch(argc, argv);
    if (std::fflush(stdout) == 0) return code;
    std::fputs("[gossamer] cannot write to stdout\n", stderr);
    return kExitFailed;
  } catch (const std::invalid_argument& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return kExitUsage;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return kExitFailed;
  }
}

}  // namespace gossamer
