#include <algorithm>
#include <cmath>
#include <cstdio>
#include <iostream>
#include <string>
#include <vector>

#include "gossamer/algo/choices.h"
#include "gossamer/base/errors.h"
#include "gossamer/base/json.h"
#include "gossamer/chart/figure_json.h"
#include "gossamer/cli/command_line.h"
#include "gossamer/cli/lab/commands.h"
#include "gossamer/cli/lab/flags.h"
#include "gossamer/cli/lab/method.h"
#include "gossamer/cli/picture/drawing.h"
#include "gossamer/lab/comparison.h"
#include "gossamer/recipe/host_shape.h"

namespace gossamer {
namespace lab_run_command {

constexpr int kDefaultHosts = 16;

struct Options {
  std::vector<std::string> methods;
  std::string problem = "logistic";
  SyntheticSpec data;
  int hosts = 0;
  std::string per_host = "1";
  std::string images;
  std::string labels;
  int pool = 4;
  std::string split = "iid";
  LabOptions run;
  Repeats repeats;
  std::string svg;
  std::string pdf;
  bool csv = false;
  bool json = false;
};

constexpr const char* kFooter = R"(
MSE is mean |x_i - x*|^2 over the workers, x* the minimiser; disagreement is mean |x_i - x̄|^2. All
workers start at 0, all methods draw the same samples. +- is the standard error over the trials.

examples:
  gossamer lab run allreduce atc@ring atc@ring:average=16 --hosts 50 --heterogeneity 1 --halve 1000
  gossamer lab run dmsgd@aer dmsgd@one_peer_exponential:optimizer=momentum --hosts 8 --per-host 4
  gossamer lab run atc@ring exact_diffusion@ring:lazy --problem least_squares --batch 0 --pdf a.pdf
  gossamer lab run allreduce cwa@ring --problem images --images i.gz --labels l.gz --split by_class)";

void add_problem(CLI::App& app, Options& o) {
  app.add_option("--problem", o.problem, "what is minimised")
      ->check(CLI::IsMember({"logistic", "least_squares", "images"}))
      ->capture_default_str();
  app.add_option("--hosts", o.hosts, "number of hosts (default 16)")->check(kFromOneUp);
  app.add_option("--per-host", o.per_host, "workers per host, or one number per host: 1,2,4")
      ->capture_default_str();
  app.add_option("--dimension", o.data.dimension, "variables d")->capture_default_str();
  app.add_option("--samples", o.data.samples, "per worker")->capture_default_str();
  app.add_option("--batch", o.data.batch, "samples per worker and step; 0: all")
      ->capture_default_str();
  app.add_option("--feature-variance", o.data.feature_variance, "of the features")
      ->capture_default_str();
  app.add_option("--heterogeneity", o.data.heterogeneity,
                 "0: all workers have the same model behind their data; 1: each its own")
      ->capture_default_str();
  app.add_option("--model-norm", o.data.model_norm, "of those models")->capture_default_str();
  app.add_option("--noise", o.data.noise, "least_squares: deviation of the targets")
      ->capture_default_str();
  app.add_option("--ridge", o.data.ridge, "r/2 |x|^2 is added (images: at least .001)")
      ->capture_default_str();
  app.add_option("--data-seed", o.data.seed, "of the data")->capture_default_str();
  app.add_option("--images", o.images,
                 "images: an IDX file, packed or not; left out: other problems");
  app.add_option("--labels", o.labels,
                 "images: the IDX file of their classes; left out: other problems");
  app.add_option("--pool", o.pool, "images: P x P pixels become one feature")
      ->check(kFromOneUp)
      ->capture_default_str();
  app.add_option("--split", o.split, "images: how they are dealt to the workers")
      ->check(CLI::IsMember({"iid", "by_class"}))
      ->capture_default_str();
}

void add_options(CLI::App& app, Options& o) {
  app.add_option("methods", o.methods, "default: allreduce atc@ring exact_diffusion@ring:lazy");
  add_problem(app, o);
  app.add_option("--optimizer", o.run.optimizer, "local optimizer")->capture_default_str();
  app.add_option("--lr", o.run.step_size.first, "first step size")->capture_default_str();
  app.add_option("--halve", o.run.step_size.every, "every so many steps; 0: never")
      ->capture_default_str();
  app.add_option("--decay", o.run.step_size.decay, "D: the step size is divided by 1 + t/D; 0: not")
      ->capture_default_str();
  app.add_option("--steps", o.run.steps, "of each run")->capture_default_str();
  app.add_option("--record-every", o.run.record_every, "steps")->capture_default_str();
  app.add_flag("--loss", o.run.records_loss, "record f(mean of the workers), from all data");
  app.add_option("--trials", o.repeats.trials, "per method, with other samples")
      ->check(CLI::Range(1, 10'000))
      ->capture_default_str();
  add_threads_and_seed(app, o.repeats.threads, o.run.seed);
  app.add_option("--svg", o.svg,
                 "draw the MSE to this file, with Python's matplotlib; left out: none");
  app.add_option("--pdf", o.pdf,
                 "the same for a paper, and its caption as a text beside it: NAME.txt; left out: "
                 "none");
  CLI::Option* csv = app.add_flag(
      "--csv", o.csv, "print the curves: method,trial,step,mse,mean_mse,disagreement,loss");
  app.add_flag("--json", o.json, "print one JSON object with the curves")->excludes(csv);
  app.footer(lab_method_help() + "\n" + kFooter);
}

/// images: at least so much that there is one minimiser.
double ridge_of(const Options& o) {
  return o.problem == "images" ? std::max(o.data.ridge, 1e-3) : o.data.ridge;
}

/// Flags of another problem than the one that is asked for.
void refuse_idle_flags(const Options& o) {
  if (o.problem == "images" || (o.images.empty() && o.labels.empty())) return;
  fail_argument({.place = "lab run",
                 .what = "problem " + o.problem + " reads no images",
                 .got = o.images.empty() ? "--labels" : "--images",
                 .remedy = "leave it out, or add --problem images"});
}

std::unique_ptr<const Problem> problem_of(const Options& o, int workers) {
  SyntheticSpec data = o.data;
  data.workers = workers;
  if (o.problem == "logistic") return make_logistic(data);
  if (o.problem == "least_squares") return make_least_squares(data);
  if (o.images.empty() || o.labels.empty()) {
    fail_argument({.place = "lab run",
                   .what = "problem images needs two IDX files, as MNIST has them",
                   .got = o.images.empty() ? "no --images" : "no --labels",
                   .remedy = "give --images FILE and --labels FILE"});
  }
  return make_softmax(read_images(o.images, o.labels, o.pool),
                      {.workers = workers,
                       .batch = data.batch,
                       .ridge = ridge_of(o),
                       .split = o.split == "iid" ? Split::iid : Split::by_class,
                       .seed = data.seed});
}

void print_table(const std::vector<Outcome>& outcomes) {
  std::size_t width = 8;
  for (const Outcome& outcome : outcomes) width = std::max(width, outcome.name.size());
  std::printf("%-*s %12s %10s %10s %13s %12s\n", static_cast<int>(width), "method", "MSE", "+-",
              "/first", "disagreement", "loss");
  const double first = last_of(outcomes.front(), &Point::error).mean;
  for (const Outcome& outcome : outcomes) {
    const Final mse = last_of(outcome, &Point::error);
    const double loss = last_of(outcome, &Point::loss).mean;
    std::printf("%-*s %12.4g %10.2g %10.4g %13.4g %12s\n", static_cast<int>(width),
                outcome.name.c_str(), mse.mean, mse.error, mse.mean / first,
                last_of(outcome, &Point::disagreement).mean,
                loss == 0 ? "-" : three_digits(loss).c_str());
  }
  const auto has_diverged = [](const Outcome& outcome) {
    return !std::isfinite(last_of(outcome, &Point::error).mean);
  };
  for (const Outcome& outcome : outcomes) {
    if (!has_diverged(outcome)) continue;
    std::printf("\n%s has diverged: take a smaller learning rate (--lr)\n", outcome.name.c_str());
  }
}

void print_csv(const std::vector<Outcome>& outcomes) {
  std::printf("method,trial,step,mse,mean_mse,disagreement,loss\n");
  for (const Outcome& outcome : outcomes) {
    for (std::size_t trial = 0; trial < outcome.trials.size(); ++trial) {
      for (const Point& p : outcome.trials[trial]) {
        std::printf("%s,%zu,%lld,%.17g,%.17g,%.17g,%.17g\n", outcome.name.c_str(), trial,
                    static_cast<long long>(p.step), p.error, p.mean_error, p.disagreement, p.loss);
      }
    }
  }
}

/// The numbers that the problem reads, by the names of their flags.
Json problem_settings(const Options& o) {
  Json all{{"batch", o.data.batch}, {"data_seed", o.data.seed}, {"ridge", ridge_of(o)}};
  if (o.problem == "images") {
    all["pool"] = o.pool;
    all["split"] = o.split;
    return all;
  }
  all["dimension"] = o.data.dimension;
  all["samples"] = o.data.samples;
  all["feature_variance"] = o.data.feature_variance;
  all["heterogeneity"] = o.data.heterogeneity;
  all["model_norm"] = o.data.model_norm;
  if (o.problem == "least_squares") all["noise"] = o.data.noise;
  return all;
}

/// Of the runs; a method's own words are in its name.
Json run_settings(const Options& o) {
  return {{"optimizer", o.run.optimizer},   {"lr", o.run.step_size.first},
          {"halve", o.run.step_size.every}, {"decay", o.run.step_size.decay},
          {"steps", o.run.steps},           {"record_every", o.run.record_every}};
}

Json to_json(const Options& o, const std::vector<Outcome>& outcomes, int workers) {
  Json json{{"problem", o.problem},
            {"workers", workers},
            {"trials", o.repeats.trials},
            {"seed", o.run.seed}};
  json["settings"] = problem_settings(o);
  json["settings"].update(run_settings(o));
  for (const Outcome& outcome : outcomes) {
    Json one{{"method", outcome.name}};
    const Curve mse = curve_of(outcome.trials, &Point::error);
    one["step"] = mse.step;
    one["mse"] = mse.mean;
    one["mse_error"] = mse.error;
    one["mean_mse"] = curve_of(outcome.trials, &Point::mean_error).mean;
    one["disagreement"] = curve_of(outcome.trials, &Point::disagreement).mean;
    if (o.run.records_loss) one["loss"] = curve_of(outcome.trials, &Point::loss).mean;
    json["methods"].push_back(one);
  }
  return json;
}

/// For a paper: what a reader needs to make the picture again.
std::string caption_of(const Options& o, const std::vector<Outcome>& outcomes,
                       const HostShape& shape) {
  const auto listed = [](const Json& settings) {
    std::string text;
    for (const auto& [name, value] : settings.items()) {
      if (value.is_number() && value == 0 && name != "heterogeneity" && name != "batch") continue;
      text += (text.empty() ? "" : ", ") + name + " " +
              (value.is_string() ? value.get<std::string>() : value.dump());
    }
    return text;
  };
  std::string text = "Problem: " + o.problem + " on " + describe(shape) + " (" +
                     listed(problem_settings(o)) + "). Runs: " + listed(run_settings(o)) + ". ";
  if (o.repeats.trials > 1) {
    text += "Means over " + std::to_string(o.repeats.trials) +
            " trials; bands are twice the standard error. ";
  }
  text += "Made by gossamer lab run";
  for (const Outcome& outcome : outcomes) text += " " + outcome.name;
  return text + ", seed " + std::to_string(o.run.seed);
}

/// The pictures that are asked for.
int draw_all(const Options& o, const std::vector<Outcome>& outcomes, const HostShape& shape) {
  std::vector<std::string> where;
  if (!o.svg.empty()) where.insert(where.end(), {"--svg", o.svg});
  if (!o.pdf.empty()) where.insert(where.end(), {"--pdf", o.pdf});
  if (where.empty()) return 0;
  const std::string title = o.problem + ", " + describe(shape);
  const Figure figure{.text = caption_of(o, outcomes, shape),
                      .charts = {chart_of(title, outcomes, &Point::error, "MSE")}};
  return draw({.place = "lab run", .figures = figure_json(figure), .arguments = where});
}

}  // namespace lab_run_command

int run_lab_run(int argc, char** argv) {
  using namespace lab_run_command;
  Options o;
  CLI::App app("Runs methods side by side with virtual workers.");
  add_options(app, o);
  parse_command_line(app, "lab run", argc, argv);
  if (o.methods.empty()) o.methods = {"allreduce", "atc@ring", "exact_diffusion@ring:lazy"};
  const HostShape shape = host_shape_of(o.hosts, kDefaultHosts, o.per_host, "lab run");
  std::vector<Contender> contenders;
  for (const std::string& text : o.methods) {
    contenders.push_back(parse_lab_method(text, shape, o.run));
  }
  check_optimizer_choice(o.run.optimizer);
  refuse_idle_flags(o);
  for (const std::string& file : {o.svg, o.pdf}) {
    if (!file.empty()) check_place_of("lab run", "the picture", file);
  }
  const auto problem = problem_of(o, shape.workers());
  const std::vector<Outcome> outcomes =
      compare(*problem, problem->minimiser(), contenders, o.repeats);
  if (o.json) {
    std::cout << to_json(o, outcomes, shape.workers()).dump() << '\n';
  } else if (o.csv) {
    print_csv(outcomes);
  } else {
    print_table(outcomes);
  }
  return draw_all(o, outcomes, shape);
}

}  // namespace gossamer
