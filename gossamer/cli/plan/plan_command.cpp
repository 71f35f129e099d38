#include <algorithm>
#include <cmath>
#include <cstdio>
#include <iostream>
#include <string>

#include "gossamer/algo/choices.h"
#include "gossamer/base/json.h"
#include "gossamer/base/units.h"
#include "gossamer/cli/command_line.h"
#include "gossamer/cli/commands.h"
#include "gossamer/cli/plan/needs.h"
#include "gossamer/cli/plan/published_table.h"
#include "gossamer/cli/plan/scenario_flags.h"
#include "gossamer/cli/text_table.h"
#include "gossamer/plan/ranking.h"
#include "gossamer/plan/scaling.h"

namespace gossamer {
namespace plan_command {

struct Options {
  ScenarioFlags scenario;
  Target target;  ///< over that of the workload file where a flag is given
  int show = 10;
  bool needs = false;
  std::vector<std::string> methods;  ///< to rank beside the others
  bool published = false;
  bool json = false;
};

constexpr const char* kFooter =
    R"(Ranks all-reduce and every topology, with codecs, local steps and global averages, by the time to
the loss that all-reduce has after --target-steps. Steps are timed by the recursion, those of the
best by simulation (marked *). How many more steps a topology needs is an estimate; where you have
measured it, give --steps-ratio.

examples:
  gossamer plan --hosts 4 --per-host 2 --link-rate 1Gbit/s --parameters 25M --compute 250ms
  gossamer plan --gpu a100 --params 1B --tokens-per-step 64k --hosts 4 --per-host 8 --link 25Gbit/s
  gossamer plan --cluster cluster.toml --workload workload.toml --json
  gossamer plan gradient_gossip@aer:int8:rounds=4 atc@ring --hosts 4 --per-host 2
  gossamer plan --published      the model beside published measurements)";

struct Flags {
  CLI::Option* steps;
  CLI::Option* ratio;
  CLI::Option* optimizer;
};

std::vector<std::string> optimizer_names() {
  const std::vector<std::string_view> names = optimizer_choices();
  return {names.begin(), names.end()};
}

Flags add_options(CLI::App& app, Options& o) {
  app.add_option("methods", o.methods,
                 "to rank as well, by the names of simulate; left out: no others");
  add_scenario_flags(app, o.scenario);
  Flags flags{};
  flags.steps = app.add_option("--target-steps", o.target.steps, "that all-reduce needs")
                    ->check(CLI::Range(1, 1'000'000'000))
                    ->capture_default_str();
  flags.ratio = app.add_option("--steps-ratio", o.target.steps_ratio,
                               "steps of gossip over those of all-reduce, as measured; "
                               "left out: a model of it")
                    ->check(CLI::Range(0.1, 100.0));
  flags.optimizer = app.add_option("--optimizer", o.target.optimizer, "sgd, momentum, adamw, …")
                        ->check(CLI::IsMember(optimizer_names()))
                        ->capture_default_str();
  app.add_option("--show", o.show, "how many of the best to rank")
      ->check(kFromOneUp)
      ->capture_default_str();
  app.add_flag(
      "--needs", o.needs,
      "from which rate of links on all-reduce, gossip or local steps are enough; with --gpu "
      "always");
  app.add_flag("--published", o.published, "fit the model to what was published, and nothing else");
  app.add_flag("--json", o.json, "print one JSON object");
  app.footer(kFooter);
  return flags;
}

Json to_json(const RankedCandidate& c) {
  Json json{{"method", name_of(c.candidate)},
            {"step_s", c.step_s},
            {"exposed_s", c.exposed_s},
            {"simulated", c.is_simulated}};
  json["steps_ratio"] = finite_json(c.steps.ratio);
  json["total_s"] = finite_json(c.total_s);
  return json;
}

Json to_json(const Ranking& ranking) {
  Json json{{"recommended", name_of(ranking.candidates[ranking.recommended].candidate)},
            {"reasons", ranking.reasons},
            {"doubts", ranking.doubts},
            {"slower", ranking.slower}};
  for (const RankedCandidate& c : ranking.candidates) json["candidates"].push_back(to_json(c));
  return json;
}

void print(const Ranking& ranking, int show, const std::vector<MethodSpec>& asked) {
  const auto is_asked = [&](const MethodSpec& method) {
    return std::ranges::find(asked, method) != asked.end();
  };
  const std::size_t count = std::min(static_cast<std::size_t>(show), ranking.candidates.size());
  std::size_t width = 8;
  for (const RankedCandidate& c : ranking.candidates) {
    width = std::max(width, name_of(c.candidate).size());
  }
  const int columns = static_cast<int>(width);
  std::printf("  %-*s %10s %10s %7s %14s\n", columns, "method", "step", "exposed", "steps",
              "total");
  const auto print_row = [&](std::size_t k) {
    const RankedCandidate& c = ranking.candidates[k];
    const bool is_known = std::isfinite(c.total_s);
    std::printf("%s %-*s %9s%s %10s %7s %14s\n", k == ranking.recommended ? ">" : " ", columns,
                name_of(c.candidate).c_str(), format_duration(c.step_s).c_str(),
                c.is_simulated ? "*" : " ", format_duration(c.exposed_s).c_str(),
                is_known ? formatted("%.2f", c.steps.ratio).c_str() : "-",
                is_known ? format_duration(c.total_s).c_str() : "not measured");
  };
  const auto is_ddp = [](const MethodSpec& method) { return name_of(method) == "ddp"; };
  bool has_allreduce = false;
  bool has_gap = false;
  for (std::size_t k = 0; k < ranking.candidates.size(); ++k) {
    const MethodSpec& method = ranking.candidates[k].candidate;
    const bool is_first_allreduce = averages_gradients(method) && !has_allreduce;
    const bool is_shown = is_first_allreduce || is_asked(method) || is_ddp(method);
    if (k >= count && !is_shown) continue;
    if (k >= count && !std::exchange(has_gap, true)) std::printf("  …\n");
    print_row(k);
    has_allreduce |= averages_gradients(method);
  }
  const std::size_t compared = ranking.candidates.size() + static_cast<std::size_t>(ranking.slower);
  std::printf("  of %zu that were compared; --show %zu ranks all\n", compared, compared);
  std::printf("\nrecommended: %s\n",
              name_of(ranking.candidates[ranking.recommended].candidate).c_str());
  for (const std::string& reason : ranking.reasons) std::printf("- %s\n", reason.c_str());
  std::printf("what this hangs on:\n");
  for (const std::string& doubt : ranking.doubts) std::printf("- %s\n", doubt.c_str());
}

Target target_of(const Options& o, const Flags& flags, const Target& read) {
  Target target = read;
  if (flags.steps->count() > 0) target.steps = o.target.steps;
  if (flags.ratio->count() > 0) target.steps_ratio = o.target.steps_ratio;
  if (flags.optimizer->count() > 0) target.optimizer = o.target.optimizer;
  return target;
}

/// What the recommended method takes of memory and disk. In CPU memory it is little, and hangs on
/// the transport.
std::vector<std::string> sizes_of(const ClusterSpec& cluster, const Workload& workload,
                                  const Target& target, const Ranking& ranking) {
  const auto element = static_cast<double>(size_of(workload.dtype));
  const auto elements = static_cast<double>(elements_of(workload));
  const MethodSpec& method = ranking.candidates[ranking.recommended].candidate;
  const Footprint each = footprint_of(method, target.optimizer, element);
  const int workers = cluster.shape().workers();
  std::vector<std::string> sentences;
  const HostSpec& most = std::ranges::max(cluster.hosts, {}, &HostSpec::workers);
  if (is_limited(most.device) && each.pinned > 0) {
    sentences.push_back(
        name_of(method) + " takes " + format_bytes(each.device * elements) +
        " of each GPU, and pins " + format_bytes(each.pinned * elements * most.workers) +
        " of a host's memory: " + shortest(each.pinned) + " bytes per parameter of each of its " +
        std::to_string(most.workers) + " workers.");
  }
  sentences.push_back("gossip.save writes " + format_bytes(each.checkpoint * elements * workers) +
                      ": " + shortest(each.checkpoint) + " bytes per parameter of each worker (" +
                      target.optimizer + ").");
  return sentences;
}

}  // namespace plan_command

int run_plan(int argc, char** argv) {
  using namespace plan_command;
  CLI::App app("Says which way to train is fastest on a cluster, and whether gossip pays at all.",
               "gossamer plan");
  Options options;
  const Flags flags = add_options(app, options);
  parse_command_line(app, "plan", argc, argv);
  if (options.published) {
    std::cout << (options.json ? published_json().dump() + "\n" : published_table()) << std::flush;
    return 0;
  }
  const ClusterFile cluster = cluster_of(options.scenario, "plan");
  const WorkloadFile file = workload_of(options.scenario, cluster, "plan");
  const Workload workload = workload_on(file, cluster);
  std::vector<MethodSpec> asked;
  for (const std::string& name : options.methods) asked.push_back(parse_method(name));
  const Ranking ranking = rank(cluster.cluster, workload, target_of(options, flags, file.target),
                               {.wanted = options.show, .also = asked});
  const bool knows_gpu = !options.scenario.gpu.name.empty();
  std::vector<Need> needs;
  if (options.needs || knows_gpu) needs = needs_of(cluster.cluster, workload);
  const Target target = target_of(options, flags, file.target);
  const std::vector<std::string> assumed = assumptions(
      app, options.scenario, cluster,
      {{"--target-steps", std::to_string(target.steps)}, {"--optimizer", target.optimizer}});
  std::vector<std::string> sentences = sizes_of(cluster.cluster, workload, target, ranking);
  if (cluster.cluster.hosts.size() > 1) {
    const Scaling scaling = scaling_of(cluster.cluster, workload, ranking);
    sentences.insert(sentences.begin(),
                     words_of(scaling, ranking, static_cast<int>(cluster.cluster.hosts.size())));
  }
  if (options.json) {
    Json json = to_json(ranking);
    json["assumed"] = assumed;
    json["beside"] = sentences;
    if (options.needs || knows_gpu) json["needs"] = needs_json(needs);
    std::cout << json.dump() << std::endl;
    return 0;
  }
  std::printf("%s; %s\n", describe(cluster).c_str(), describe(workload).c_str());
  for (const std::string& line : assumed) std::printf("assumed: %s\n", line.c_str());
  std::printf("\n");
  print(ranking, options.show, asked);
  std::printf("beside it:\n");
  for (const std::string& sentence : sentences) std::printf("- %s\n", sentence.c_str());
  if (!needs.empty()) {
    std::printf("\n%s", needs_table(needs, computes_samples(options.scenario.gpu)).c_str());
  }
  return 0;
}

}  // namespace gossamer
