#include <cstdio>
#include <iostream>
#include <string>
#include <vector>

#include "gossamer/cli/amount.h"
#include "gossamer/cli/command_line.h"
#include "gossamer/cli/text_table.h"
#include "gossamer/cli/theory/commands.h"
#include "gossamer/cli/theory/flags.h"
#include "gossamer/model/dadam_bound.h"

namespace gossamer {
namespace theory_bound_command {

struct Options {
  MixingFlags mixing;
  std::string parameters = "25M";
  DAdamSetting setting{.step_size = 1e-3, .steps = 100'000};
  bool json = false;
};

constexpr const char* kFooter =
    R"(Theorem 4.1 of "Efficient Decentralized Training of DNNs" (Wang, KTH) bounds E|grad F(x)|^2 at a
random one of T steps, x the mean over the workers: `optimization` plus `per_step` times the sum of
the other terms. Only `disagreement` knows the topology, by lambda = rho: it is the price of
decentralization. The theorem is about one W for all steps; for schedules of several rounds rho is a
stand-in. A worst case over all losses: often it is vacuous, and the last line says so.

examples:
  gossamer theory bound aer --hosts 4 --per-host 4 --parameters 65M --step-size 7e-4
  gossamer theory bound --lambda 0.9 --steps 1000000 --step-size 1e-5
  gossamer theory bound ring --hosts 32 --json)";

void add_options(CLI::App& app, Options& o) {
  add_mixing_flags(app, o.mixing);
  add_rho_flag(app, "--lambda", o.mixing);
  const auto add = [&](const char* name, double& value, const char* about) {
    app.add_option(name, value, about)->capture_default_str();
  };
  add("--steps", o.setting.steps, "T, more than beta1/(1 - beta1)");
  app.add_option("--parameters", o.parameters, "D: 25M, 7B")->capture_default_str();
  add("--step-size", o.setting.step_size, "alpha");
  add("--beta1", o.setting.beta1, "of Adam, below beta2");
  add("--beta2", o.setting.beta2, "of Adam, below 1");
  add("--epsilon", o.setting.epsilon, "of Adam");
  add("--gradient-bound", o.setting.gradient_bound, "R: no entry of a gradient is larger");
  add("--smoothness", o.setting.smoothness, "L: of the gradient of the loss");
  add("--excess-loss", o.setting.excess_loss, "F(x0) - F*: the loss at the start above the least");
  app.add_flag("--json", o.json, "print one JSON object");
  app.footer(std::string(kRhoHelp) + kFooter);
}

double in_bound(const DAdamTerm& term, const DAdamBound& bound) {
  return bound.*term.value * (term.times_per_step ? bound.per_step : 1);
}

Json setting_json(const DAdamSetting& s) {
  return {{"steps", s.steps},
          {"parameters", s.parameters},
          {"step_size", s.step_size},
          {"beta1", s.beta1},
          {"beta2", s.beta2},
          {"epsilon", s.epsilon},
          {"gradient_bound", s.gradient_bound},
          {"smoothness", s.smoothness},
          {"excess_loss", s.excess_loss},
          {"lambda", s.lambda}};
}

void print_json(const TheoryMixing& mixing, const DAdamSetting& setting, const DAdamBound& bound) {
  Json json{{"topology", to_json(mixing)["topology"]},
            {"workers", mixing.strength.workers},
            {"setting", setting_json(setting)}};
  for (const DAdamTerm& term : dadam_terms()) {
    json["terms"].push_back({{"term", term.name},
                             {"formula", term.formula},
                             {"value", finite_json(bound.*term.value)},
                             {"in_bound", finite_json(in_bound(term, bound))}});
  }
  json["per_step"] = bound.per_step;
  json["bound"] = finite_json(bound.total());
  json["known_at_start"] = known_at_start(setting);
  json["verdict"] = name_of(verdict_on(bound, setting));
  std::cout << json.dump() << '\n';
}

std::string verdict_text(const DAdamSetting& setting, const DAdamBound& bound) {
  const std::string known = "known before the first step: |grad F|^2 is at most " +
                            four_digits(known_at_start(setting)) +
                            ", the smaller of D R^2 and 2 L (F(x0) - F*)";
  switch (verdict_on(bound, setting)) {
    case BoundVerdict::informative:
      return "informative: it is below what is " + known;
    case BoundVerdict::vacuous:
      return "vacuous: it is not below what is " + known;
    case BoundVerdict::infinite:
      return "infinite, so it says nothing: with lambda = 1 the workers never come to agree";
  }
  __builtin_unreachable();
}

void print_text(const TheoryMixing& mixing, const DAdamSetting& s, const DAdamBound& bound) {
  std::printf("%s: lambda = %s\n", mixing.text.c_str(), four_digits(s.lambda).c_str());
  std::printf("alpha = %g, beta1 = %g, beta2 = %g, eps = %g, T = %.12g, D = %.12g, R = %g, ",
              s.step_size, s.beta1, s.beta2, s.epsilon, s.steps, s.parameters, s.gradient_bound);
  std::printf("L = %g, F(x0) - F* = %g\n\n", s.smoothness, s.excess_loss);
  std::vector<std::vector<std::string>> rows = {{"term", "formula", "value", "in the bound"}};
  for (const DAdamTerm& term : dadam_terms()) {
    rows.push_back({std::string(term.name), std::string(term.formula),
                    four_digits(bound.*term.value), four_digits(in_bound(term, bound))});
  }
  rows.push_back(
      {"per_step", "ln(1 + R/(eps (1-beta2)))/T~ - (T/T~) ln(beta2)", four_digits(bound.per_step)});
  rows.push_back({"bound", "optimization + per_step (noise + ... + disagreement)", "",
                  four_digits(bound.total())});
  std::printf("%s", text_table(rows, 2).c_str());
  std::printf("where T~ = T - beta1/(1-beta1), r = 1 - beta1/beta2\n\n%s\n",
              verdict_text(s, bound).c_str());
}

}  // namespace theory_bound_command

int run_theory_bound(int argc, char** argv) {
  using namespace theory_bound_command;
  Options o;
  CLI::App app("The convergence bound of decentralized Adam, term by term.",
               "gossamer theory bound");
  add_options(app, o);
  parse_command_line(app, "theory bound", argc, argv);
  const TheoryMixing mixing = mixing_of(o.mixing, "theory bound");
  o.setting.parameters =
      static_cast<double>(parse_amount("--parameters", o.parameters, "theory bound"));
  o.setting.lambda = mixing.strength.rho;
  const DAdamBound bound = dadam_bound(o.setting);
  (o.json ? print_json : print_text)(mixing, o.setting, bound);
  return 0;
}

}  // namespace gossamer
