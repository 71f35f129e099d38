#include <cmath>
#include <cstdio>
#include <iostream>
#include <string>
#include <vector>

#include "gossamer/base/errors.h"
#include "gossamer/chart/figure_json.h"
#include "gossamer/cli/command_line.h"
#include "gossamer/cli/picture/drawing.h"
#include "gossamer/cli/text_table.h"
#include "gossamer/cli/theory/commands.h"
#include "gossamer/cli/theory/figure.h"
#include "gossamer/cli/theory/flags.h"

namespace gossamer {
namespace theory_speedup_command {

struct Options {
  MixingFlags mixing;
  std::vector<double> gamma = {0.5, 2};
  std::vector<double> omega = {1, 0.65, 0.47};
  std::vector<double> sigma = {0, 0.1};
  std::vector<double> variance;
  JitterCase c{.ratios = {.buckets = 5}};
  std::string figure;
  bool json = false;
};

constexpr const char* kFooter =
    R"(Times are in units of the mean compute time of a step.
  gamma  time that an all-reduce communicates / compute time
  omega  time that an exchange communicates / the all-reduce's
  sigma  deviation of compute times; --variance: sigma^2
Speed-up is 1 - T_D/T_AR, as in all published figures. Closed forms: T_AR = max(s + gamma/B,
s (phi + (1 - phi)/B) + gamma), T_D = max(1, omega gamma), with B buckets, the forward's share phi
and s = 1 + sigma kappa_n, kappa_n the expected maximum of n normals. The recursion follows n
workers step by step; the topology says who waits for whom. In it the busiest link between hosts
carries gamma and, in a mean step, omega gamma; where hosts take turns at that (aer, random), links
are idle in between, and T_D is below omega gamma. Both are a reconstruction of the runtime model
of "From promise to practice" (ICLR 2025), within four points of its poster's first row. omega from
bytes alone mispredicts real links: time an exchange and an all-reduce on yours.

examples:
  gossamer theory speedup --gamma 2.05 --omega 1,0.65,0.47 --sigma 0.1
  gossamer theory speedup aer --hosts 4 --per-host 4 --gamma 1 --omega 0.5 --variance 0.04
  gossamer theory speedup --omega 1,0.65,0.47 --sigma 0,0.1,0.3 --figure speedup.svg)";

void add_options(CLI::App& app, Options& o) {
  const auto add_list = [&](const char* name, std::vector<double>& values, const char* about) {
    return app.add_option(name, values, about)->delimiter(',')->allow_extra_args(false);
  };
  add_list("--gamma", o.gamma, "one or more, with commas")
      ->check(CLI::Range(0.0, 1e6))
      ->capture_default_str();
  add_list("--omega", o.omega, "the same")->check(CLI::Range(0.0, 1e6))->capture_default_str();
  CLI::Option* sigma =
      add_list("--sigma", o.sigma, "the same")->check(CLI::Range(0.0, 10.0))->capture_default_str();
  add_list("--variance", o.variance, "sigma^2, the same; left out: of --sigma")
      ->check(CLI::Range(0.0, 100.0))
      ->excludes(sigma);
  add_mixing_flags(app, o.mixing);
  app.add_option("--buckets", o.c.ratios.buckets, "B, equal pieces that are communicated")
      ->check(CLI::Range(1, 10'000))
      ->capture_default_str();
  app.add_option("--forward-share", o.c.ratios.forward_share, "phi, of the compute time")
      ->check(CLI::Range(0.0, 1.0))
      ->capture_default_str();
  app.add_option("--steps", o.c.steps, "of the recursion")
      ->check(CLI::Range(1, 1'000'000))
      ->capture_default_str();
  app.add_option(
      "--figure", o.figure,
      "draw speed-up over gamma from 0.1 to 10 to this SVG file, with Python's matplotlib; "
      "left out: none");
  app.add_flag("--json", o.json, "print one JSON object");
  app.footer(kFooter);
}

struct Row {
  double gamma = 0;
  double omega = 0;
  double sigma = 0;
  StepPair closed;
  StepPair recursion;
};

std::vector<Row> rows_of(const Options& o, const Schedule& schedule) {
  std::vector<Row> rows;
  JitterCase c = o.c;
  for (const double gamma : o.gamma) {
    for (const double omega : o.omega) {
      for (const double sigma : o.sigma) {
        c.ratios.gamma = gamma;
        c.ratios.omega = omega;
        c.sigma = sigma;
        rows.push_back({gamma, omega, sigma,
                        closed_step_times(c.ratios, sigma, schedule.shape.workers()),
                        step_times_with_jitter(schedule, c)});
      }
    }
  }
  return rows;
}

Json to_json(const StepPair& pair) {
  return {{"allreduce", pair.allreduce},
          {"decentralized", pair.decentralized},
          {"speed_up", pair.speed_up()}};
}

Json to_json(const SpeedUpCurves& curves) {
  Json json{{"gamma", curves.gamma}};
  for (const SpeedUpCurve& curve : curves.curves) {
    json["curves"].push_back(
        {{"omega", curve.omega}, {"sigma", curve.sigma}, {"speed_up", curve.speed_up}});
  }
  return json;
}

void print_text(const Options& o, const TheoryMixing& mixing, const std::vector<Row>& rows) {
  std::printf("%s, B = %d, phi = %s; times in compute times of a step\n\n", mixing.text.c_str(),
              o.c.ratios.buckets, four_digits(o.c.ratios.forward_share).c_str());
  std::vector<std::vector<std::string>> table = {
      {"", "", "", "", "", "closed form", "", "", "recursion"},
      {"gamma", "omega", "sigma", "T_AR", "T_D", "speed-up", "T_AR", "T_D", "speed-up"}};
  const auto percent = [](const StepPair& pair) {
    char text[32];
    std::snprintf(text, sizeof text, "%.1f %%", 100 * pair.speed_up());
    return std::string(text);
  };
  for (const Row& row : rows) {
    table.push_back({four_digits(row.gamma), four_digits(row.omega), four_digits(row.sigma),
                     four_digits(row.closed.allreduce), four_digits(row.closed.decentralized),
                     percent(row.closed), four_digits(row.recursion.allreduce),
                     four_digits(row.recursion.decentralized), percent(row.recursion)});
  }
  std::printf("%s", text_table(table, 0).c_str());
}

void print_json(const Options& o, const TheoryMixing& mixing, const std::vector<Row>& rows,
                const SpeedUpCurves& curves) {
  Json json{{"topology", mixing.topology},
            {"workers", mixing.strength.workers},
            {"buckets", o.c.ratios.buckets},
            {"forward_share", o.c.ratios.forward_share}};
  for (const Row& row : rows) {
    json["rows"].push_back({{"gamma", row.gamma},
                            {"omega", row.omega},
                            {"sigma", row.sigma},
                            {"closed_form", to_json(row.closed)},
                            {"recursion", to_json(row.recursion)}});
  }
  if (!o.figure.empty()) json["figure"] = to_json(curves);
  std::cout << json.dump() << '\n';
}

}  // namespace theory_speedup_command

int run_theory_speedup(int argc, char** argv) {
  using namespace theory_speedup_command;
  Options o;
  CLI::App app("Step times of all-reduce and of a decentralized method, and the speed-up.",
               "gossamer theory speedup");
  add_options(app, o);
  parse_command_line(app, "theory speedup", argc, argv);
  if (!o.variance.empty()) o.sigma.clear();
  for (const double variance : o.variance) o.sigma.push_back(std::sqrt(variance));
  const TheoryMixing mixing = mixing_of(o.mixing, "theory speedup");
  const Schedule schedule = make_schedule(o.mixing.spec, mixing.shape);
  if (!o.figure.empty()) check_place_of("theory speedup", "the figure", o.figure);
  const std::vector<Row> rows = rows_of(o, schedule);
  SpeedUpCurves curves;
  if (!o.figure.empty()) curves = speed_up_curves(schedule, o.c, o.omega, o.sigma);
  if (o.json) {
    print_json(o, mixing, rows, curves);
  } else {
    print_text(o, mixing, rows);
  }
  if (o.figure.empty()) return 0;
  const Figure figure = speed_up_figure("Speed-up over all-reduce: " + mixing.text, curves);
  return draw({.place = "theory speedup",
               .figures = figure_json(figure),
               .arguments = {"--svg", o.figure}});
}

}  // namespace gossamer
