#include "gossamer/cli/theory/flags.h"

#include "gossamer/base/errors.h"
#include "gossamer/cli/command_line.h"
#include "gossamer/graph/topology.h"
#include "gossamer/model/topology_orders.h"
#include "gossamer/recipe/host_shape.h"

namespace gossamer {
const char* const kRhoHelp =
    R"(rho is |W - J| of a static graph; a schedule of tau rounds (4 where they never repeat) that leave
c of a disagreement counts as 1 - (1 - c)/tau.
)";

void add_mixing_flags(CLI::App& app, MixingFlags& f) {
  app.add_option("topology", f.spec.topology, "as of `gossamer topology --list`")
      ->capture_default_str();
  app.add_option("--hosts", f.hosts,
                 "number of hosts (default " + std::to_string(f.default_hosts) + ")")
      ->check(kFromOneUp);
  app.add_option("--per-host", f.per_host, "workers per host, or one number per host: 1,2,4")
      ->capture_default_str();
  app.add_option("--degree", f.spec.degree, "base_k: most neighbours per round")
      ->capture_default_str();
  app.add_option("--seed", f.spec.seed, "random: which graphs")->capture_default_str();
  app.add_flag("--lazy", f.spec.lazy, "(I + W)/2 in every round");
  app.add_option("--rounds-per-step", f.spec.rounds_per_step, "K rounds in every step; left out: 1")
      ->check(kFromOneUp);
}

void add_rho_flag(CLI::App& app, const std::string& name, MixingFlags& f) {
  CLI::Option* option =
      app.add_option(name, f.rho, "in place of the topology's |W - J|; left out: that")
          ->check(CLI::Range(0.0, 1.0));
  for (const char* other : {"topology", "--degree", "--seed", "--lazy", "--rounds-per-step"}) {
    option->excludes(app.get_option(other));
  }
}

TheoryMixing mixing_of(const MixingFlags& flags, const std::string& place) {
  TheoryMixing mixing{.shape =
                          host_shape_of(flags.hosts, flags.default_hosts, flags.per_host, place)};
  const int workers = mixing.shape.workers();
  if (flags.rho) {
    mixing.strength = {.workers = workers, .rho = *flags.rho};
  } else {
    mixing.topology = find_topology(flags.spec.topology).name;
    for (const std::string& modifier : modifiers_of(flags.spec))
      mixing.topology += " + " + modifier;
    mixing.strength = theory_mixing(make_schedule(flags.spec, mixing.shape));
  }
  mixing.text = (flags.rho ? "" : mixing.topology + ", ") + describe(mixing.shape) + " = " +
                std::to_string(workers) + (workers == 1 ? " worker" : " workers");
  return mixing;
}

Json to_json(const TheoryMixing& mixing) {
  return {{"topology", mixing.topology.empty() ? Json(nullptr) : Json(mixing.topology)},
          {"workers", mixing.strength.workers},
          {"rho", mixing.strength.rho}};
}

}  // namespace gossamer
