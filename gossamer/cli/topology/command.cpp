#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <string>
#include <string_view>
#include <vector>

#include "gossamer/base/errors.h"
#include "gossamer/cli/command_line.h"
#include "gossamer/cli/commands.h"
#include "gossamer/cli/topology/report.h"
#include "gossamer/graph/schedule_file.h"
#include "gossamer/graph/schedule_spec.h"
#include "gossamer/graph/topology.h"
#include "gossamer/recipe/host_shape.h"

namespace gossamer {
namespace topology_command {

constexpr int kDefaultHosts = 4;

struct Options {
  ScheduleSpec spec{.topology = ""};
  int hosts = 0;
  std::string per_host = "1";
  bool list = false;
  bool json = false;
  std::string svg;
};

constexpr const char* kFooter =
    R"(Modifiers apply in this order: lazy, rounds per step, local steps, global average.
A payload is all parameters once. JSON: `bytes_per_host_per_step` is in payloads, the mean over
hosts and over the rounds of a period (which every step sees when buckets are staggered);
`rho` is |W - J| of the only round or of the mean round, `period_contraction` that of the product
of a period. `rounds` has the period's W as [i, j, W_ij], i taking from j, self loops (i = j)
included. Where rounds never repeat (period 0) all of this is about the first four. Where only the
columns of W sum to 1, there is neither rho nor contraction.
A file NAME.json has {"rounds": [...]}, of which each is W as a list of rows, {"edges": [[receiver,
sender, weight], ...]} or {"groups": [[0, 1], [2, 3]]}; what --json prints is such a file.

examples:
  gossamer topology aer --hosts 4 --per-host 2
  gossamer topology base_k --hosts 7 --degree 2 --svg base_k.svg
  gossamer topology ring --per-host 1,2,4 --json > mine.json
  gossamer topology mine.json --lazy)";

void add_options(CLI::App& app, Options& o) {
  app.add_option("name", o.spec.topology,
                 "a topology; --list shows them; or a file of matrices, NAME.json; must be given");
  app.add_option("--hosts", o.hosts, "number of hosts (default 4)")->check(kFromOneUp);
  app.add_option("--per-host", o.per_host, "workers per host, or one number per host: 1,2,4")
      ->capture_default_str();
  app.add_option("--seed", o.spec.seed, "random: which graphs")->capture_default_str();
  app.add_option("--degree", o.spec.degree,
                 "base_k: most neighbours per round; random_directed: receivers")
      ->capture_default_str();
  app.add_option("--link-rates", o.spec.link_rates,
                 "fitted: of each host, in any unit: 20,20,20,5; left out: equal")
      ->delimiter(',');
  app.add_flag("--lazy", o.spec.lazy, "(I + W)/2 in every round");
  app.add_option("--rounds-per-step", o.spec.rounds_per_step, "K rounds in every step; left out: 1")
      ->check(kFromOneUp);
  app.add_option("--local-steps", o.spec.local_steps,
                 "mix in every H-th step only; left out: in every step")
      ->check(kFromOneUp);
  app.add_option("--global-average", o.spec.global_average,
                 "average over everybody in every H-th step; left out: never")
      ->check(kFromOneUp);
  app.add_flag("--json", o.json, "print one JSON object");
  app.add_option("--svg", o.svg, "write a picture to this file (- for stdout); left out: none");
  app.add_flag("--list", o.list, "list the topologies");
  app.footer(kFooter);
}

void print_list() {
  for (const Topology& topology : topologies()) {
    std::string name(topology.name);
    if (!topology.alias.empty()) name += " (" + std::string(topology.alias) + ")";
    std::printf("%-35s %s\n", name.c_str(), topology.summary.data());
  }
  std::printf("%-35s %s\n", "FILE.json", "W of each round, as it stands in the file");
}

TopologyReport make_report(const Options& o) {
  const bool asks = o.hosts != 0 || o.per_host != Options{}.per_host;
  const HostShape shape = !asks && is_schedule_file(o.spec.topology)
                              ? shape_in_file(o.spec.topology)
                              : host_shape_of(o.hosts, kDefaultHosts, o.per_host, "topology");
  return report_on(full_name(o.spec.topology), modifiers_of(o.spec), make_schedule(o.spec, shape));
}

bool wants_colour() {
  const char* no_color = std::getenv("NO_COLOR");
  return ::isatty(STDOUT_FILENO) == 1 && (no_color == nullptr || *no_color == '\0');
}

void show(const Options& o) {
  if (o.spec.topology.empty()) {
    fail_argument({.place = "topology",
                   .what = "a topology must be named",
                   .remedy = "for example `gossamer topology aer`; --list shows all"});
  }
  const bool svg_to_stdout = o.svg == "-";
  if (o.json && svg_to_stdout) {
    fail_argument({.place = "topology",
                   .what = "--json and --svg - both want stdout",
                   .remedy = "give --svg a file name"});
  }
  const TopologyReport report = make_report(o);
  if (!o.svg.empty() && !svg_to_stdout)
    write_text_file("topology", "the picture", o.svg, to_svg(report));
  std::cout << (svg_to_stdout ? to_svg(report)
                : o.json      ? to_json(report)
                              : to_text(report, wants_colour()))
            << std::flush;
}

}  // namespace topology_command

int run_topology(int argc, char** argv) {
  using namespace topology_command;
  CLI::App app("Prints a topology: its rounds, what they cost, and how fast they average.",
               "gossamer topology");
  Options options;
  add_options(app, options);
  parse_command_line(app, "topology", argc, argv);
  if (options.list) {
    print_list();
    return 0;
  }
  show(options);
  return 0;
}

}  // namespace gossamer
