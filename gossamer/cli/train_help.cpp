#include "gossamer/cli/train_help.h"

#include <CLI/CLI.hpp>

#include "gossamer/cli/command_line.h"
#include "gossamer/cli/train_flags.h"

namespace gossamer {
namespace {

constexpr const char* kTrustAbout =
    "use a SentencePiece model that is not of a run: one that was made for it could run code here";
constexpr const char* kDemoAbout =
    "Trains one small transformer on real text twice, by AllReduce and by the alternating "
    "exponential ring with AccumAdamW, on 4 emulated hosts x 2 workers.";
constexpr const char* kDemoFooter =
    R"(examples:
  gossamer demo --steps 200
  gossamer demo --gamma 0.2
  gossamer demo --data FOLDER --json)";
constexpr const char* kTranslateAbout = "Translates lines of text with a trained model.";
constexpr const char* kTranslateFooter =
    R"(Takes the consensus model that `gossamer train --out RUN` has left, with its vocabulary. A line that
is longer than the model's context is cut.

examples:
  gossamer translate RUN --input val.en.gz --output val.hyp
  sacrebleu val.de --input val.hyp
  echo "A man in a blue shirt." | gossamer translate RUN --beam 5)";

/// Note [The demo's settings]: a small transformer for so many steps that it has learned something.
/// The ring gets twice the learning rate: a worker's small batch makes Adam's normalised step
/// smaller in the mean direction. AllReduce gains from a higher rate, too, and is ahead after the
/// same steps where both are tuned: docs/results.md has the grid.
Recipe demo_recipe() {
  Recipe recipe;
  recipe.cluster.gamma = 2;
  recipe.model.size.width = 64;
  recipe.model.size.layers = 2;
  recipe.model.size.heads = 4;
  recipe.algorithm.buckets = 4;
  recipe.run.steps = 1500;
  recipe.data.global_batch = 32;
  recipe.optimizer.hyper.lr = 2e-3;
  recipe.optimizer.warmup = 100;
  recipe.optimizer.final_lr = 0.02;
  recipe.algorithm.clip_norm = 1;
  recipe.run.checkpoint_every = 0;
  return recipe;
}

}  // namespace

const TrainCommandHelp kTrainHelp{
    .name = "train",
    .about =
        "Trains a model, decentralized or by AllReduce. Workers are threads, or, under torchrun, "
        "mpirun or srun, the processes that it starts. Flags win over the recipe, whose keys are "
        "the flags' names with underscores; of a flag that is given twice the last one counts.",
    .footer =
        R"(--gamma given several times makes one run for each value, in OUT/gamma-VALUE, all with the compute
time that the first has measured, so that `gossamer report` can compare them.

Exit codes: 0 done, 1 something outside failed, 2 wrong input, 3 a gradient was not finite, 4 another
worker is lost, 130 interrupted.

examples:
  gossamer train --data FOLDER --topology ring --hosts 4 --per-host 2 --steps 500 --out ring
  gossamer train recipe.toml --pattern allreduce --gamma 1 --gamma 4 --out allreduce
  gossamer train --resume ring --steps 1000)",
    .out = "folder for run.toml, metrics, checkpoints and summary.json; left out: nothing is kept",
    .can_resume = true};

const TrainCommandHelp kProbeHelp{
    .name = "probe",
    .about =
        "Measures, in less than a minute, the links between the workers that a launcher has "
        "started and how long they compute for a step of a recipe's model, and writes cluster.toml "
        "and workload.toml for gossamer plan and simulate. Without a launcher workers are threads, "
        "whose links are worth measuring where they are emulated (--link-rate).",
    .footer =
        R"(Exit codes: 0 done, 1 something outside failed, 2 wrong input, 4 another worker is lost, 130
interrupted.

examples:
  torchrun --no-python --nproc-per-node 4 gossamer probe --data FOLDER --out probed
  gossamer probe --data FOLDER --hosts 4 --per-host 2 --link-rate 100Mbit/s --out probed
  gossamer plan --cluster probed/cluster.toml --workload probed/workload.toml)",
    .out = "folder for cluster.toml and workload.toml; left out: no files"};

void add_request_flags(CLI::App& app, const TrainCommandHelp& help, TrainLine& line,
                       Recipe& recipe) {
  app.footer(std::string(help.footer));
  app.add_flag("--json", line.json, "print one JSON object at the end");
  app.add_option("--out", line.out, std::string(help.out));
  if (help.can_resume) {
    app.add_option("--resume", line.resume, "continue the run in this folder; left out: a new run");
    app.add_flag("--auto-resume", line.auto_resume,
                 "continue the run in the folder of --out if there is a checkpoint, else begin it");
  }
  app.add_option("--transport", line.transport,
                 "threads, net (processes of a launcher), or auto: net where there is a launcher")
      ->capture_default_str();
  app.add_flag("--trust-vocabulary", recipe.data.trusts_vocabulary, kTrustAbout);
  add_train_flags(app, recipe);
}

void add_demo_flags(CLI::App& app, DemoLine& line) {
  line.base = demo_recipe();
  app.add_option("--data", line.base.data.data,
                 "a file or folder of text; default: Python's own sources");
  app.add_option("--gamma", line.base.cluster.gamma, "AllReduce communication time / compute time")
      ->capture_default_str();
  app.add_option("--steps", line.base.run.steps, "steps of each run")->capture_default_str();
  app.add_option("--seed", line.base.run.seed, "of everything random")->capture_default_str();
  app.add_option("--lr", line.base.optimizer.hyper.lr, "learning rate of AllReduce")
      ->capture_default_str();
  app.add_option("--gossip-lr", line.gossip_lr, "learning rate of the ring")->capture_default_str();
  app.add_flag("--json", line.json, "print one JSON object with both summaries");
  app.footer(kDemoFooter);
}

void add_translate_flags(CLI::App& app, TranslateLine& line) {
  app.add_option("run", line.run, "run folder of a translation; must be given")->required();
  app.add_option("--input", line.input, "sentences, one per line, plain or gzip; default: stdin");
  app.add_option("--output", line.output, "where the translations go; default: stdout");
  app.add_flag("--trust-vocabulary", line.trusts_vocabulary, kTrustAbout);
  app.add_option("--beam", line.beam, "hypotheses to follow; 1: greedy")
      ->check(kFromOneUp)
      ->capture_default_str();
  app.add_option("--length-power", line.length_power, "with a beam, n pieces score log p / n^POWER")
      ->capture_default_str();
  app.add_option("--batch", line.batch, "sentences at a time")
      ->check(kFromOneUp)
      ->capture_default_str();
  app.footer(kTranslateFooter);
}

CommandPage train_page(std::string_view command) {
  CLI::App app;
  if (command == "demo") {
    DemoLine line;
    app.description(kDemoAbout);
    add_demo_flags(app, line);
    return page_of(app, command);
  }
  if (command == "translate") {
    TranslateLine line;
    app.description(kTranslateAbout);
    add_translate_flags(app, line);
    return page_of(app, command);
  }
  const TrainCommandHelp& help = command == "probe" ? kProbeHelp : kTrainHelp;
  TrainLine line;
  Recipe recipe;
  app.description(std::string(help.about));
  add_request_flags(app, help, line, recipe);
  CommandPage page = page_of(app, command);
  page.arguments = "[RECIPE.toml] [OPTIONS]";
  return page;
}

}  // namespace gossamer
