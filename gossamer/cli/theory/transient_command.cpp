#include <cstdio>
#include <iostream>
#include <string>
#include <vector>

#include "gossamer/cli/command_line.h"
#include "gossamer/cli/text_table.h"
#include "gossamer/cli/theory/commands.h"
#include "gossamer/cli/theory/flags.h"
#include "gossamer/model/topology_orders.h"

namespace gossamer {
namespace theory_transient_command {

struct Options {
  MixingFlags mixing;
  int average_every = 16;
  bool json = false;
};

constexpr const char* kFooter =
    R"(Transient iterations: the step from which on the price of decentralization in the error is no
larger than the error of parallel SGD with n workers. Orders from the lecture "Decentralized SGD and
its variants", without constants and logarithms: take ratios between topologies, sizes and methods,
not numbers of steps. The lecture prints some strongly and generally convex rows without the powers
of rho, which its rates give.
The second table is the lecture's comparison of topologies; its last columns are worked out from the
topologies themselves with the row of d_sgd, non_convex, iid (for up to 1024 workers). The orders
printed for star and grid are loose: the formula gives n^5 for both. `gossamer lab transient`
measures.

examples:
  gossamer theory transient ring --hosts 16
  gossamer theory transient one_peer_exponential --hosts 64
  gossamer theory transient --hosts 100 --rho 0.99 --global-average 8 --json)";

void add_options(CLI::App& app, Options& o) {
  add_mixing_flags(app, o.mixing);
  add_rho_flag(app, "--rho", o.mixing);
  app.add_option("--global-average", o.average_every, "H, of global_average only")
      ->check(kFromOneUp)
      ->capture_default_str();
  app.add_flag("--json", o.json, "print one JSON object");
  app.footer(std::string(kRhoHelp) + kFooter);
}

void print_json(const TheoryMixing& mixing) {
  Json json = to_json(mixing);
  json["global_average_every"] = mixing.strength.global_average_every;
  for (const TransientRow& row : transient_rows()) {
    json["rows"].push_back(
        {{"method", name_of(row.method)},
         {"loss", name_of(row.curvature)},
         {"data", name_of(row.data)},
         {"order", product_text(factors_of(row))},
         {"iterations", finite_json(transient_iterations(row, mixing.strength))}});
  }
  for (const TopologyComparison& row : compare_topologies(mixing.shape)) {
    const bool is_known = row.neighbours > 0 || mixing.strength.workers == 1;
    json["topologies"].push_back({{"topology", row.order.topology},
                                  {"communication", row.order.communication},
                                  {"order", product_text(factors_of(row.order))},
                                  {"printed_iterations", row.printed_iterations},
                                  {"neighbours", is_known ? Json(row.neighbours) : Json(nullptr)},
                                  {"rho", finite_json(row.rho)},
                                  {"iterations", finite_json(row.iterations)}});
  }
  std::cout << json.dump() << '\n';
}

void print_text(const TheoryMixing& mixing) {
  const MixingStrength& strength = mixing.strength;
  std::printf("%s: rho = %s, 1 - rho = %s; H = %d\n\n", mixing.text.c_str(),
              four_digits(strength.rho).c_str(), four_digits(1 - strength.rho).c_str(),
              strength.global_average_every);
  const std::string here = "n = " + std::to_string(strength.workers);
  std::vector<std::vector<std::string>> rows = {
      {"method", "loss", "data", "transient iterations", "here"}};
  for (const TransientRow& row : transient_rows()) {
    rows.push_back({std::string(name_of(row.method)), std::string(name_of(row.curvature)),
                    std::string(name_of(row.data)), product_text(factors_of(row)),
                    four_digits(transient_iterations(row, strength))});
  }
  rows.push_back({"exact_diffusion", "non_convex", "", "none in the lecture", "-"});
  std::printf("%s\n", text_table(rows, 4).c_str());
  std::vector<std::vector<std::string>> topologies = {{"topology", "communication",
                                                       "transient iterations", here, "neighbours",
                                                       "1 - rho", "n^3 rho^4/(1 - rho)^2"}};
  for (const TopologyComparison& row : compare_topologies(mixing.shape)) {
    topologies.push_back({std::string(row.order.topology), std::string(row.order.communication),
                          product_text(factors_of(row.order)), four_digits(row.printed_iterations),
                          row.neighbours == 0 ? "-" : std::to_string(row.neighbours),
                          four_digits(1 - row.rho), four_digits(row.iterations)});
  }
  std::printf("%s~ leaves logarithms out\n", text_table(topologies, 3).c_str());
}

}  // namespace theory_transient_command

int run_theory_transient(int argc, char** argv) {
  using namespace theory_transient_command;
  Options o;
  CLI::App app("Transient iterations: from which step on a method keeps up with parallel SGD.",
               "gossamer theory transient");
  add_options(app, o);
  parse_command_line(app, "theory transient", argc, argv);
  TheoryMixing mixing = mixing_of(o.mixing, "theory transient");
  mixing.strength.global_average_every = o.average_every;
  (o.json ? print_json : print_text)(mixing);
  return 0;
}

}  // namespace gossamer
