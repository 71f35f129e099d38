#include <cstdio>
#include <exception>
#include <stdexcept>
#include <string>
#include <vector>

#include "gossamer/base/errors.h"
#include "gossamer/base/outside_error.h"
#include "gossamer/cli/commands.h"
#include "gossamer/cli/output.h"
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
    {"doctor", "check what training needs here, and the links between workers; needs Python",
     run_doctor},
    {"launch", "start the workers of a host, and lost ones again; needs Python", run_launch},
    {"completion", "print a script that completes commands and flags in bash, zsh or fish",
     run_completion},
    {"man", "print the manual page", run_man},
};

constexpr const char* kFooter =
    R"(Exit codes: 0 done, 1 something outside failed (a full disk), 2 the
command line or a file that it names is wrong, 3 a gradient was not finite, 4 another worker is
lost, or the link to it; 130 interrupted by Ctrl-C, 143 by SIGTERM.

try: gossamer topology aer --hosts 4 --per-host 2)";

CommandPage program_page() {
  CommandPage page{.about =
                       "Gossamer trains neural networks data-parallel without a global "
                       "all-reduce.",
                   .footer = kFooter,
                   .arguments = "COMMAND [OPTIONS]",
                   .flags = {{.names = {"-h", "--help"},
                              .help = "this text; `gossamer help COMMAND` or `gossamer COMMAND "
                                      "--help` for a command"},
                             {.names = {"-V", "--version"}, .help = "the version"}}};
  for (const Command& command : kCommands) {
    page.commands.emplace_back(command.name, command.summary);
  }
  return page;
}

bool asks_for_help(std::string_view word) { return word == "--help" || word == "-h"; }

/// Runs a command as `gossamer WORDS --help`, which throws its page.
[[noreturn]] void ask_for_page(const std::vector<std::string>& words) {
  std::vector<std::string> arguments = words;
  arguments.emplace_back("--help");
  std::vector<char*> argv;
  for (std::string& argument : arguments) argv.push_back(argument.data());
  argv.push_back(nullptr);
  find_command("gossamer", words.front(), kCommands)
      .run(static_cast<int>(arguments.size()), argv.data());
  throw std::logic_error("[bug] " + words.front() + " has no page; please report it");
}

CommandPage page_for(const std::vector<std::string>& words) {
  try {
    ask_for_page(words);
  } catch (const HelpAsked& asked) {
    return asked.page;
  }
}

int dispatch(int argc, char** argv) {
  const std::string_view word = argc > 1 ? argv[1] : "--help";
  const bool is_help = word == "help";
  if (asks_for_help(word) || (is_help && (argc == 2 || asks_for_help(argv[2])))) {
    throw HelpAsked{program_page()};
  }
  if (is_help) ask_for_page({argv + 2, argv + argc});
  if (word == "--version" || word == "-V" || word == "version") {
    std::puts("gossamer " GOSSAMER_VERSION);
    return 0;
  }
  return find_command("gossamer", word, kCommands).run(argc - 1, argv + 1);
}

int fail(const std::exception& error, int code) {
  std::fprintf(stderr, "%s\n", error.what());
  return code;
}

}  // namespace

std::span<const Command> commands() { return kCommands; }

std::vector<CommandPage> all_pages() {
  std::vector<CommandPage> pages{program_page()};
  for (const Command& command : kCommands) {
    const std::string name(command.name);
    pages.push_back(page_for({name}));
    const auto inner = pages.back().commands;
    for (const auto& [word, summary] : inner) pages.push_back(page_for({name, word}));
  }
  return pages;
}

int run_cli(int argc, char** argv) {
  try {
    int code = 0;
    try {
      code = dispatch(argc, argv);
    } catch (const HelpAsked& asked) {
      std::fputs(help_text(asked.page, text_columns()).c_str(), stdout);
    }
    return finish_output(code);
  } catch (const std::invalid_argument& error) {
    return fail(error, kExitUsage);
  } catch (const OutsideError& error) {
    return fail(error, kExitFailed);
  } catch (const IoError& error) {  // of a file that the command line names
    return fail(error, kExitUsage);
  } catch (const std::exception& error) {
    return fail(error, kExitFailed);
  }
}

}  // namespace gossamer
