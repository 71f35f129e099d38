#include <cstdio>
#include <iostream>
#include <string>
#include <vector>

#include "gossamer/cli/command_line.h"
#include "gossamer/cli/text_table.h"
#include "gossamer/cli/theory/commands.h"
#include "gossamer/cli/theory/flags.h"
#include "gossamer/model/rates.h"

namespace gossamer {
namespace theory_rates_command {

struct Options {
  MixingFlags mixing;
  int average_every = 16;
  RateSetting setting{.mixing = {}, .steps = 10'000};
  bool json = false;
};

constexpr const char* kFooter =
    R"(Orders from the lecture "Decentralized SGD and its variants": constants are left out, the
smoothness of the loss among them. Compare methods, topologies and sizes with them; they are not
values of a loss. `sampling` is all that parallel SGD has (p_sgd); the other terms are the price of
decentralization. `even from` is the T from which on such a term is no larger than `sampling`:
the transient iterations, with your sigma and b in them. non_convex: of the mean of |grad f|^2 over T
steps; convex: of f - f*, weighted over the steps, if strongly_convex up to logarithms.
sigma^2 bounds the variance of a worker's gradient; b^2 the mean of |grad f_i - grad f|^2 over the
workers: --b 0 where all data come from one distribution.

examples:
  gossamer theory rates ring --hosts 32 --steps 100000
  gossamer theory rates one_peer_exponential --hosts 32 --b 0
  gossamer theory rates --hosts 64 --rho 0.9 --sigma 0.5 --global-average 8 --json)";

void add_options(CLI::App& app, Options& o) {
  add_mixing_flags(app, o.mixing);
  add_rho_flag(app, "--rho", o.mixing);
  app.add_option("--steps", o.setting.steps, "T")->capture_default_str();
  app.add_option("--sigma", o.setting.sigma, "noise of a worker's gradient")->capture_default_str();
  app.add_option("--b", o.setting.b, "how far the workers' gradients differ; 0: iid data")
      ->capture_default_str();
  app.add_option("--global-average", o.average_every, "H, of global_average only")
      ->check(kFromOneUp)
      ->capture_default_str();
  app.add_flag("--json", o.json, "print one JSON object");
  app.footer(std::string(kRhoHelp) + kFooter);
}

void print_json(const TheoryMixing& mixing, const RateSetting& setting,
                const std::vector<RateValue>& rates) {
  Json json = to_json(mixing);
  json["steps"] = setting.steps;
  json["sigma"] = setting.sigma;
  json["b"] = setting.b;
  json["global_average_every"] = setting.mixing.global_average_every;
  for (const RateValue& value : rates) {
    Json rate{{"method", name_of(value.rate.method)},
              {"loss", name_of(value.rate.curvature)},
              {"sum", finite_json(value.sum)},
              {"note", value.rate.note}};
    for (const RateTermValue& term : value.terms) {
      rate["terms"].push_back({{"term", term.name},
                               {"order", term.order},
                               {"value", finite_json(term.value)},
                               {"even_from", finite_json(term.even_from)}});
    }
    json["rates"].push_back(rate);
  }
  std::cout << json.dump() << '\n';
}

std::string method_text(const RateValue& value, std::vector<std::string_view>& notes) {
  std::string text(name_of(value.rate.method));
  if (value.rate.note.empty()) return text;
  std::size_t place = 0;
  while (place < notes.size() && notes[place] != value.rate.note) ++place;
  if (place == notes.size()) notes.push_back(value.rate.note);
  return text + " [" + std::to_string(place + 1) + "]";
}

void print_text(const TheoryMixing& mixing, const RateSetting& s,
                const std::vector<RateValue>& rates) {
  std::printf("%s: rho = %s, 1 - rho = %s\n", mixing.text.c_str(),
              four_digits(s.mixing.rho).c_str(), four_digits(1 - s.mixing.rho).c_str());
  std::printf("T = %.12g, sigma = %g, b = %g, H = %d\n\n", s.steps, s.sigma, s.b,
              s.mixing.global_average_every);
  std::vector<std::vector<std::string>> rows = {
      {"method", "loss", "term", "order", "value", "even from"}};
  std::vector<std::string_view> notes;
  for (const RateValue& value : rates) {
    const std::string method = method_text(value, notes);
    const std::string loss(name_of(value.rate.curvature));
    for (std::size_t k = 0; k < value.terms.size(); ++k) {
      const RateTermValue& term = value.terms[k];
      rows.push_back({k == 0 ? method : "", k == 0 ? loss : "", std::string(term.name), term.order,
                      four_digits(term.value), k == 0 ? "" : four_digits(term.even_from)});
    }
    if (value.terms.size() > 1) rows.push_back({"", "", "sum", "", four_digits(value.sum)});
  }
  std::printf("%s\n", text_table(rows, 4).c_str());
  for (std::size_t k = 0; k < notes.size(); ++k) {
    std::printf("[%zu] %s\n", k + 1, std::string(notes[k]).c_str());
  }
}

}  // namespace theory_rates_command

int run_theory_rates(int argc, char** argv) {
  using namespace theory_rates_command;
  Options o;
  CLI::App app("Convergence rates of decentralized SGD and its variants, term by term.",
               "gossamer theory rates");
  add_options(app, o);
  parse_command_line(app, "theory rates", argc, argv);
  const TheoryMixing mixing = mixing_of(o.mixing, "theory rates");
  o.setting.mixing = mixing.strength;
  o.setting.mixing.global_average_every = o.average_every;
  (o.json ? print_json : print_text)(mixing, o.setting, evaluate_rates(o.setting));
  return 0;
}

}  // namespace gossamer
