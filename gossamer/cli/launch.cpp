#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "gossamer/base/errors.h"
#include "gossamer/base/outside_error.h"
#include "gossamer/cli/commands.h"
#include "gossamer/cli/python_program.h"
#include "gossamer/cli/train_help.h"

namespace gossamer {
namespace {

bool asks_for_help(int argc, char** argv) {
  const auto is_help = [](std::string_view word) { return word == "--help" || word == "-h"; };
  return std::any_of(argv + 1, argv + argc, is_help);
}

/// Replaces this process by gossamer-train, whose first argument is the command. Training needs
/// libtorch, which takes a second to load; so it is a program of its own, and all other commands
/// start in milliseconds.
int hand_over(int argc, char** argv) {
  if (asks_for_help(argc, argv)) throw HelpAsked{train_page(argv[0])};
  std::string program = training_program(argv[0]).string();
  if (!may_be_there(program) && is_of_package()) {
    fail_argument({.place = argv[0],
                   .what = "this package has nothing that trains with the torch that is here",
                   .got = "no " + program,
                   .remedy = "python3 -c 'import gossamer' says which torch it needs"});
  }
  if (!may_be_there(program)) {
    fail_argument({.place = argv[0],
                   .what = "this build is without libtorch and cannot train: no such program",
                   .got = program,
                   .remedy = "build it with `cmake --preset release && cmake --build build`"});
  }
  std::vector<char*> arguments{program.data()};
  arguments.insert(arguments.end(), argv, argv + argc);
  arguments.push_back(nullptr);
  ::execv(program.c_str(), arguments.data());
  fail_outside({.place = argv[0],
                .what = std::string("cannot start the program: ") + std::strerror(errno),
                .got = program});
}

/// Replaces this process by the command of the Python package that has its name.
int hand_over_to_python(int argc, char** argv) {
  std::vector<std::string> command = python_command(argv[0]);
  std::vector<char*> arguments;
  for (std::string& word : command) arguments.push_back(word.data());
  arguments.insert(arguments.end(), argv, argv + argc);
  arguments.push_back(nullptr);
  ::execvp(arguments.front(), arguments.data());
  fail_to_start_python(argv[0], command.front(), errno);
}

/// What Python's argparse says of the same commands; a test compares their flags.
const FlagPage kHelpFlag{.names = {"-h", "--help"}, .help = "this text"};

CommandPage report_page() {
  return {.name = "report",
          .about =
              "Makes one HTML file, readable without a network, about runs of `gossamer train "
              "--out` and simulations: speed-up, where the time went, loss, disagreement, "
              "bytes per link, timelines, predicted against measured. Name an AllReduce run "
              "as well.",
          .footer =
              "Exit codes: 0 written, 1 it cannot be written, 2 a run folder is wrong.\n\n"
              "examples:\n  gossamer report allreduce ring --out report.html",
          .arguments = "RUN... [OPTIONS]",
          .flags = {{.names = {"run"},
                     .help = "run folders, or trace files of simulations; must be given",
                     .is_positional = true},
                    {.names = {"--out"},
                     .value = "FILE",
                     .help = "default: report.html in the run folder, in this folder for several"},
                    {.names = {"--json"}, .help = "print the figures as one JSON object"},
                    {.names = {"--workers"},
                     .value = "N|all",
                     .help = "how many workers the timeline shows; at most 256",
                     .fallback = "8",
                     .group = "the timeline"},
                    {.names = {"--steps"},
                     .value = "N",
                     .help = "how many steps of the AllReduce run, or of the first one",
                     .fallback = "4",
                     .group = "the timeline"},
                    {.names = {"--from-step"},
                     .value = "K",
                     .help = "the first one; default: a third into the trace",
                     .group = "the timeline"},
                    kHelpFlag}};
}

CommandPage doctor_page() {
  return {.name = "doctor",
          .about =
              "Checks what training needs here. Under a launcher, as in `torchrun "
              "--nproc-per-node 4 -m gossamer doctor`, also measures the links between the "
              "workers.",
          .footer =
              "Exit codes: 0 fine, 2 something keeps training from working.\n\n"
              "examples:\n  gossamer doctor\n"
              "  torchrun --nproc-per-node 4 -m gossamer doctor --timeout-s 60",
          .flags = {{.names = {"--json"}, .help = "print one JSON object"},
                    {.names = {"--timeout-s"},
                     .value = "S",
                     .help = "seconds for all of it, more where workers start late",
                     .fallback = "10"},
                    kHelpFlag}};
}

CommandPage workers_page() {
  return {
      .name = "launch",
      .about =
          "Starts the workers of one host, and starts a lost one again, which then comes back "
          "to the others. For programs with Gossip(lost=\"go_on\"); where this ends, they go "
          "on.",
      .footer =
          "Exit codes: 0 a worker of this host has finished, 1 none has, 2 the command line is "
          "wrong, 130 ended by SIGINT, 143 by SIGTERM. Where none has finished and all of them "
          "ended with the same 2, 3 or 4, that code.\n\n"
          "examples:\n  gossamer launch -n 4 -- python train.py\n"
          "  gossamer launch -n 4 --spares 1 --anew 3 -- python train.py",
      .arguments = "-n WORKERS [OPTIONS] -- COMMAND...",
      .flags = {{.names = {"-n", "--workers"}, .value = "N", .help = "on this host; must be given"},
                {.names = {"--restarts"},
                 .value = "N",
                 .help = "how often each is started again at most",
                 .fallback = "3"},
                {.names = {"--spares"},
                 .value = "N",
                 .help = "processes that have imported torch already, from which lost workers are "
                         "forked, so that they are back sooner by these seconds; one is enough "
                         "for all; each takes the memory of that",
                 .fallback = "0"},
                {.names = {"--hosts"},
                 .value = "N",
                 .help = "hosts, each with as many workers",
                 .fallback = "1"},
                {.names = {"--host"},
                 .value = "N",
                 .help = "which of them this is, from 0",
                 .fallback = "0"},
                {.names = {"--master"},
                 .value = "HOST:PORT",
                 .help = "HOST:PORT of host 0, for the start; left out: this host alone"},
                {.names = {"--members"},
                 .value = "FOLDER",
                 .help = "a folder that all hosts see; default: a new one"},
                {.names = {"--begin"},
                 .value = "HOSTS",
                 .help = "so many of --hosts begin, from host 0 on, and each of the others joins "
                         "when it is started; default: all begin"},
                {.names = {"--anew"},
                 .value = "TIMES",
                 .help = "how often the whole job begins anew where no worker is left that has "
                         "the state of the run; its program then goes on from its last "
                         "checkpoint. Give all hosts the same",
                 .fallback = "0"},
                {.names = {"--come-back"},
                 .help = "the folder is of this job alone: where this host was there before, its "
                         "workers come back"},
                {.names = {"command"},
                 .help = "-- what the workers run; must be given",
                 .is_positional = true},
                kHelpFlag}};
}

/// Whether help is asked for before the workers' own command begins.
bool asks_launch_for_help(int argc, char** argv) {
  const auto words = std::span(argv, static_cast<std::size_t>(argc));
  const auto end = std::find_if(words.begin() + 1, words.end(),
                                [](std::string_view word) { return word == "--"; });
  return asks_for_help(static_cast<int>(end - words.begin()), argv);
}

}  // namespace

int run_launch(int argc, char** argv) {
  if (asks_launch_for_help(argc, argv)) throw HelpAsked{workers_page()};
  return hand_over_to_python(argc, argv);
}

int run_train(int argc, char** argv) { return hand_over(argc, argv); }

int run_demo(int argc, char** argv) { return hand_over(argc, argv); }

int run_probe(int argc, char** argv) { return hand_over(argc, argv); }

int run_translate(int argc, char** argv) { return hand_over(argc, argv); }

int run_report(int argc, char** argv) {
  if (asks_for_help(argc, argv)) throw HelpAsked{report_page()};
  return hand_over_to_python(argc, argv);
}

int run_doctor(int argc, char** argv) {
  if (asks_for_help(argc, argv)) throw HelpAsked{doctor_page()};
  return hand_over_to_python(argc, argv);
}

}  // namespace gossamer
