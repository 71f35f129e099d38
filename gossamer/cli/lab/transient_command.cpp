#include <cmath>
#include <cstdio>
#include <iostream>
#include <limits>
#include <string>
#include <vector>

#include "gossamer/base/json.h"
#include "gossamer/cli/command_line.h"
#include "gossamer/cli/lab/commands.h"
#include "gossamer/cli/lab/flags.h"
#include "gossamer/cli/lab/method.h"
#include "gossamer/lab/transient.h"
#include "gossamer/model/convergence.h"

namespace gossamer {
namespace lab_transient_command {

struct Options {
  std::string method = "atc@ring";
  std::string problem = "least_squares";
  std::vector<int> sizes = {12, 16, 24, 32, 48, 64};
  TransientSpec spec{.schedule = {}, .factor = 1.1};
  bool json = false;
};

constexpr const char* kFooter = R"(
Least squares with step sizes 1/(10 + t), or logistic regression with 20/(100 + t), as the lecture's
illustration; d = 10, one sample per worker and step. A method has left its
transient stage at the first recorded step from which on its MSE, the mean over the trials, is at
most FACTOR times that of parallel SGD on the same samples, for as long again. `bound` is the
theory's order for strongly convex problems, n rho^2/(1 - rho) or, for unequal data without a
correction, n rho^2/(1 - rho)^2; no constant, and the worst case over where the noise lies, so that
what is measured may grow more slowly. Sizes without a transient stage are left out of the fits.

examples:
  gossamer lab transient
  gossamer lab transient --problem logistic --sizes 12,16,24,32
  gossamer lab transient atc@exponential --heterogeneity 1
  gossamer lab transient exact_diffusion@ring:lazy --heterogeneity 1 --sizes 12,16,24,32)";

void add_options(CLI::App& app, Options& o) {
  app.add_option("method", o.method, "as of `lab run`")->capture_default_str();
  app.add_option("--sizes", o.sizes, "numbers of workers, one per host")
      ->delimiter(',')
      ->check(CLI::Range(1, 100'000))
      ->capture_default_str();
  app.add_option("--problem", o.problem, "what is minimised")
      ->check(CLI::IsMember({"least_squares", "logistic"}))
      ->capture_default_str();
  app.add_option("--heterogeneity", o.spec.heterogeneity,
                 "0: all workers have the same model behind their data; 1: each its own")
      ->capture_default_str();
  app.add_option("--factor", o.spec.factor, "what counts as keeping up")->capture_default_str();
  app.add_option("--most-steps", o.spec.most_steps, "give up after")->capture_default_str();
  app.add_option("--trials", o.spec.trials, "per method")
      ->check(CLI::Range(1, 10'000))
      ->capture_default_str();
  add_threads_and_seed(app, o.spec.threads, o.spec.seed);
  app.add_flag("--json", o.json, "print one JSON object");
  app.footer(kFooter);
}

struct Row {
  int workers = 0;
  double rho = 0;  ///< effective
  std::optional<std::int64_t> steps;
  double bound = 0;
};

double bound_of(const Options& o, const std::string& pattern, const MixingStrength& mixing) {
  const bool corrects = pattern != "atc" && pattern != "cwa";
  const DataSplit data = o.spec.heterogeneity > 0 ? DataSplit::non_iid : DataSplit::iid;
  const auto method = corrects ? TransientMethod::exact_diffusion : TransientMethod::d_sgd;
  return transient_iterations(*find_transient_row(method, Curvature::strongly_convex, data),
                              mixing);
}

Row measured(const Options& o, int workers) {
  TransientSpec spec = o.spec;
  const LabOptions method = parse_lab_method(o.method, even_hosts(workers, 1), {}).options;
  spec.schedule = method.schedule;
  spec.pattern = method.pattern;
  if (o.problem == "logistic") spec.problem = TransientProblem::logistic;
  const MixingStrength mixing = mixing_strength(method.schedule);
  return {workers, mixing.rho, transient_steps(spec), bound_of(o, method.pattern, mixing)};
}

/// The steps of the first record say that there is no transient stage.
bool counts(const Row& row) { return row.steps && *row.steps > 2; }

double exponent_of(const std::vector<Row>& rows, double (*value)(const Row&)) {
  std::vector<double> x;
  std::vector<double> y;
  for (const Row& row : rows) {
    if (!counts(row)) continue;
    x.push_back(row.workers);
    y.push_back(value(row));
  }
  return growth_exponent(x, y);
}

std::string rounded(double value) {
  if (!std::isfinite(value)) return "-";
  char text[32];
  std::snprintf(text, sizeof text, "%.2f", value);
  return text;
}

void print(const Options& o, const std::vector<Row>& rows, double exponent, double by_theory) {
  if (o.json) {
    Json json{{"method", o.method},
              {"problem", o.problem},
              {"exponent", finite_json(exponent)},
              {"bound_exponent", finite_json(by_theory)}};
    for (const Row& row : rows) {
      json["rows"].push_back({{"workers", row.workers},
                              {"rho", row.rho},
                              {"steps", row.steps ? Json(*row.steps) : Json(nullptr)},
                              {"bound", finite_json(row.bound)}});
    }
    std::cout << json.dump() << '\n';
    return;
  }
  std::printf("%8s %12s %10s %12s\n", "workers", "1 - rho", "steps", "bound");
  for (const Row& row : rows) {
    const std::string steps = !row.steps    ? "more"
                              : counts(row) ? std::to_string(*row.steps)
                                            : "none";
    std::printf("%8d %12.3g %10s %12.4g\n", row.workers, 1 - row.rho, steps.c_str(), row.bound);
  }
  std::printf("steps grow as n^%s, the bound as n^%s\n", rounded(exponent).c_str(),
              rounded(by_theory).c_str());
}

}  // namespace lab_transient_command

int run_lab_transient(int argc, char** argv) {
  using namespace lab_transient_command;
  Options o;
  CLI::App app("Measures transient iterations and how they grow with the number of workers.");
  add_options(app, o);
  parse_command_line(app, "lab transient", argc, argv);
  std::vector<Row> rows;
  for (int workers : o.sizes) rows.push_back(measured(o, workers));
  const double exponent =
      exponent_of(rows, [](const Row& row) { return static_cast<double>(*row.steps); });
  const double by_theory = exponent_of(rows, [](const Row& row) { return row.bound; });
  print(o, rows, exponent, by_theory);
  return 0;
}

}  // namespace gossamer
