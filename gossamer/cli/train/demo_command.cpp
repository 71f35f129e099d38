#include <cstdio>
#include <iostream>
#include <string>
#include <thread>
#include <vector>

#include "gossamer/base/units.h"
#include "gossamer/cli/command_line.h"
#include "gossamer/cli/progress.h"
#include "gossamer/cli/python_program.h"
#include "gossamer/cli/train/commands.h"
#include "gossamer/cli/train_help.h"
#include "gossamer/train/interrupt.h"
#include "gossamer/train/run.h"

namespace gossamer {
namespace {

Recipe allreduce_recipe(Recipe recipe) {
  recipe.algorithm.pattern = &find_pattern("allreduce");
  recipe.optimizer.optimizer = &find_optimizer("adamw");
  return recipe;
}

Recipe gossip_recipe(Recipe recipe, double lr) {
  recipe.algorithm.pattern = &find_pattern("cwa");
  recipe.algorithm.topology = "alternating_exponential_ring";
  recipe.optimizer.optimizer = &find_optimizer("accum_adamw");
  recipe.optimizer.hyper.lr = lr;
  recipe.optimizer.hyper.beta1 = 0.7;
  recipe.optimizer.hyper.beta2 = 0.92;
  return recipe;
}

struct Contender {
  std::string name;
  Recipe recipe;
  TrainResult result;
};

void train(Contender& c, const Task& task, const InterruptGuard& guard) {
  ProgressLine progress(c.name, c.recipe.run.steps);
  std::cerr << "gossamer: training with " << c.name << '\n';
  c.result = run_training(c.recipe, task,
                          {.stop = &guard.stop(),
                           .progress = [&progress](std::int64_t step, double loss, double step_s) {
                             progress.show(step, loss, step_s);
                           }});
}

void print_head() {
  std::printf("\n%-20s %9s %9s %12s %14s %10s %13s\n", "", "ms/step", "speed-up", "exposed ms",
              "sent/host/step", "val loss", "disagreement");
}

/// As soon as it has trained: on a small machine each takes most of a minute.
void print_row(const Contender& c, double baseline_ms) {
  const TrainSummary& s = c.result.summary;
  std::printf("%-20s %9.1f %8.2fx %12.1f %14s %10.4f %13.5f\n", c.name.c_str(), s.ms_per_step,
              baseline_ms / s.ms_per_step, s.exposed_ms,
              format_bytes(s.bytes_per_host_per_step).c_str(), s.val_loss, s.disagreement);
  std::fflush(stdout);
}

void print_setting(const std::vector<Contender>& contenders) {
  const auto& [name, recipe, result] = contenders.front();
  std::printf("8 workers on 4 hosts x 2, %lld parameters, %lld steps each\n",
              static_cast<long long>(result.summary.parameters),
              static_cast<long long>(recipe.run.steps));
  std::printf("compute %.1f ms per step, links emulated at %s (gamma = %g)\n", result.compute_ms,
              format_rate(result.link_bytes_per_s).c_str(), recipe.cluster.gamma);
  std::printf(
      "learning rates %g and %g; with its own best one AllReduce is ahead after the same steps\n"
      "(docs/results.md)\n",
      recipe.optimizer.hyper.lr, contenders.back().recipe.optimizer.hyper.lr);
}

/// With fewer cores than workers AllReduce looks worse than it is where its communication is short.
void print_caveat(int workers) {
  const auto cores = static_cast<int>(std::thread::hardware_concurrency());
  if (cores >= workers) return;
  std::printf(
      "\n%d workers share %d cores here: AllReduce also waits for the last worker to get its "
      "turn,\nwhich counts against it most on fast links (docs/results.md).\n",
      workers, cores);
}

void print_next(const std::vector<Contender>& contenders) {
  const TrainSummary& ring = contenders.front().result.summary;
  const TrainSummary& aer = contenders.back().result.summary;
  std::printf("\nThe same steps in %.0f %% of the time, validation loss %+.2f %%.\n",
              100 * aer.ms_per_step / ring.ms_per_step, 100 * (aer.val_loss / ring.val_loss - 1));
  const std::string program = program_as_typed();
  std::printf(
      "Next: the same with links ten times faster, where AllReduce is no longer the brake\n"
      "  %s demo --gamma 0.2\n"
      "or your own text, topology and cluster\n"
      "  %s train --data FOLDER --topology ring --hosts 8 --per-host 1 --gamma 2\n",
      program.c_str(), program.c_str());
}

}  // namespace

int demo_command(int argc, char** argv) {
  DemoLine line;
  CLI::App app;
  add_demo_flags(app, line);
  parse_arguments(app, "demo", {argv + 1, argv + argc});
  Recipe& base = line.base;
  check_recipe(base);

  const InterruptGuard guard([] { return std::string("stopped"); });
  const Task task = open_task(base);
  std::cerr << "gossamer: " << task.description << '\n'
            << "gossamer: measuring the compute time of a step\n";
  base.cluster.compute_ms = 1e3 * measure_compute_s(base, task);
  std::vector<Contender> contenders{{"AllReduce AdamW", allreduce_recipe(base), {}},
                                    {"AER AccumAdamW", gossip_recipe(base, line.gossip_lr), {}}};
  for (Contender& c : contenders) {
    train(c, task, guard);
    if (line.json) continue;
    if (&c == &contenders.front()) {
      print_setting(contenders);
      print_head();
    }
    print_row(c, contenders.front().result.summary.ms_per_step);
  }
  if (line.json) {
    Json both = Json::object();
    for (const Contender& c : contenders) both[c.name] = summary_json(c.recipe, c.result);
    std::cout << both.dump() << '\n';
    return 0;
  }
  print_caveat(host_shape_of(base.cluster).workers());
  print_next(contenders);
  return 0;
}

}  // namespace gossamer
