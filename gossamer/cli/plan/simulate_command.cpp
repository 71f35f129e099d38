#include <algorithm>
#include <cmath>
#include <cstdio>
#include <iostream>
#include <limits>
#include <sstream>
#include <string>
#include <vector>

#include "gossamer/base/errors.h"
#include "gossamer/base/gzip.h"
#include "gossamer/base/index.h"
#include "gossamer/base/json.h"
#include "gossamer/base/timeline.h"
#include "gossamer/base/units.h"
#include "gossamer/cli/command_line.h"
#include "gossamer/cli/commands.h"
#include "gossamer/cli/plan/scenario_flags.h"
#include "gossamer/cli/text_table.h"
#include "gossamer/plan/forecast.h"
#include "gossamer/recipe/host_shape.h"

namespace gossamer {
namespace simulate_command {

struct Options {
  ScenarioFlags scenario;
  std::vector<std::string> methods;
  std::int64_t steps = 100;
  std::int64_t warm_up = 20;
  std::uint64_t seed = 1;
  std::vector<std::string> slow;
  std::vector<std::string> link_changes;
  std::vector<std::string> losses;
  std::string trace;
  bool json = false;
};

constexpr const char* kFooter =
    R"(A method is ddp, allreduce (hierarchical, overlapped), PATTERN@TOPOLOGY, or a topology (for cwa),
and after colons what differs from the defaults: bf16, int8, rounds=K, local=H, average=H, degree=K,
lazy, backward, skip=STALENESS, stagger=no, group=ring, and the pattern's numbers: outer_every=H.

s/step is the mean over workers and steps; exposed is the part of it in which a worker only waits
for others; link is how busy the busiest direction of a link is; model is s/step by the recursion,
which knows nothing of the stages inside an exchange; /first is s/step over that of the first line.

examples:
  gossamer simulate ddp allreduce aer aer:bf16 --hosts 4 --per-host 2 --link-rate 1Gbit/s
  gossamer simulate ring ring:skip --hosts 8 --slow 3:2.5
  gossamer simulate aer --cluster cluster.toml --workload workload.toml --trace aer.json)";

void add_options(CLI::App& app, Options& o) {
  app.add_option("methods", o.methods, "default: ddp allreduce aer ring one_peer_exponential");
  add_scenario_flags(app, o.scenario);
  app.add_option("--steps", o.steps, "measured, after --warm-up")
      ->check(CLI::Range(1, 1'000'000))
      ->capture_default_str();
  app.add_option("--warm-up", o.warm_up, "steps before them")
      ->check(CLI::Range(0, 1'000'000))
      ->capture_default_str();
  app.add_option("--seed", o.seed, "of compute times")->capture_default_str();
  app.add_option("--slow", o.slow, "WORKER:FACTOR, computes so much longer; left out: none")
      ->type_name("W:F");
  app.add_option("--link-change", o.link_changes,
                 "HOST:FACTOR@TIME, of its rate: 3:0.25@10s; left out: none")
      ->type_name("H:F@T");
  app.add_option("--lose", o.losses, "WORKER@TIME, dies: 5@3s; left out: none")->type_name("W@T");
  app.add_option("--trace", o.trace,
                 "write what happens, for https://ui.perfetto.dev; with one method; "
                 "left out: nothing");
  app.add_flag("--json", o.json, "print one JSON object");
  app.footer(kFooter);
}

[[noreturn]] void refuse(const std::string& flag, const std::string& got, const std::string& form) {
  const std::string example = flag == "--slow" ? "3:2.5" : flag == "--lose" ? "5@3s" : "3:0.25@10s";
  fail_argument({.place = "simulate",
                 .what = flag + " takes " + form,
                 .got = "'" + got + "'",
                 .remedy = "for example " + flag + " " + example});
}

/// A number of [0, most]; NaN for anything else.
double number_of(const std::string& text, double most) {
  char* end = nullptr;
  const bool is_digits = !text.empty() && text.find_first_not_of("0123456789.e-+") == text.npos;
  const double value = is_digits ? std::strtod(text.c_str(), &end) : -1;
  const bool good = is_digits && *end == '\0' && value >= 0 && value <= most;
  return good ? value : std::numeric_limits<double>::quiet_NaN();
}

/// Which of `count` workers or hosts.
int index_of(const std::string& text, int count, const std::string& flag, const std::string& got) {
  const double value = number_of(text, 1e9);
  if (value == std::floor(value) && value < count) return static_cast<int>(value);
  const std::string what = flag == "--link-change" ? "host" : "worker";
  fail_argument(
      {.place = "simulate",
       .what = "there is no " + what + " " + text + "; there are 0 to " + std::to_string(count - 1),
       .got = flag + " " + got});
}

/// The parts of "3:0.25@10s" and the like: what is before, between and behind the signs.
std::vector<std::string> parts_of(const std::string& text, const std::string& signs,
                                  const std::string& flag, const std::string& form) {
  std::vector<std::string> parts;
  std::size_t from = 0;
  for (char sign : signs) {
    const std::size_t at = text.find(sign, from);
    if (at == text.npos) refuse(flag, text, form);
    parts.push_back(text.substr(from, at - from));
    from = at + 1;
  }
  parts.push_back(text.substr(from));
  return parts;
}

double factor_of(const std::string& text, const std::string& flag, const std::string& got) {
  const double factor = number_of(text, 1e6);
  if (std::isnan(factor)) refuse(flag, got, "a factor from 0 to 1e6");
  return factor;
}

void slow_down(Workload& workload, const std::vector<std::string>& words, int workers) {
  if (words.empty()) return;
  std::vector<double>& factors = workload.compute.factors;
  if (factors.empty()) factors.assign(at(workers), 1);
  for (const std::string& word : words) {
    const auto parts = parts_of(word, ":", "--slow", "WORKER:FACTOR");
    const int worker = index_of(parts[0], workers, "--slow", word);
    factors[at(worker)] *= factor_of(parts[1], "--slow", word);
  }
}

ForecastOptions forecast_options(const Options& o, const HostShape& shape) {
  ForecastOptions options{.steps = o.steps, .warm_up = o.warm_up, .record = !o.trace.empty()};
  for (const std::string& word : o.link_changes) {
    const auto parts = parts_of(word, ":@", "--link-change", "HOST:FACTOR@TIME");
    const int host = index_of(parts[0], shape.hosts(), "--link-change", word);
    const double factor = factor_of(parts[1], "--link-change", word);
    options.link_changes.push_back(
        {parse_duration(parts[2], "simulate --link-change"), host, factor});
  }
  for (const std::string& word : o.losses) {
    const auto parts = parts_of(word, "@", "--lose", "WORKER@TIME");
    const int worker = index_of(parts[0], shape.workers(), "--lose", word);
    options.losses.push_back({parse_duration(parts[1], "simulate --lose"), worker});
  }
  return options;
}

double mean(const std::vector<double>& values) {
  double sum = 0;
  for (double value : values) sum += value;
  return values.empty() ? 0 : sum / static_cast<double>(values.size());
}

Json to_json(const Forecast& f) {
  Json json{{"method", name_of(f.candidate)}};
  json["step_s"] = finite_json(f.step_s);
  json["compute_s"] = finite_json(f.compute_s);
  json["exposed_s"] = finite_json(f.exposed_s);
  json["model_step_s"] = finite_json(f.model_s);
  json["link_busy"] = finite_json(f.link_busy);
  json["bytes_per_host_per_step"] = f.bytes_per_host;
  json["skipped"] = f.result.skipped;
  json["stuck"] = f.result.waits_for.size();
  return json;
}

std::string seconds(double value) {
  return std::isfinite(value) ? format_duration(value) : std::string("-");
}

std::string with_form(const char* form, double value) {
  return std::isfinite(value) ? formatted(form, value) : "-";
}

void print_table(const std::vector<Forecast>& forecasts) {
  std::size_t width = 8;
  for (const Forecast& f : forecasts) width = std::max(width, name_of(f.candidate).size());
  std::printf("%-*s %10s %10s %7s %6s %12s %10s\n", static_cast<int>(width), "method", "step",
              "exposed", "/first", "link", "sent/host", "model");
  const double first = forecasts.front().step_s;
  for (const Forecast& f : forecasts) {
    std::printf("%-*s %10s %10s %7s %6s %12s %10s\n", static_cast<int>(width),
                name_of(f.candidate).c_str(), seconds(f.step_s).c_str(),
                seconds(f.exposed_s).c_str(), with_form("%.3f", f.step_s / first).c_str(),
                with_form("%.0f%%", 100 * f.link_busy).c_str(),
                format_bytes(mean(f.bytes_per_host)).c_str(), seconds(f.model_s).c_str());
  }
  for (const Forecast& f : forecasts) {
    if (f.result.skipped > 0) {
      std::printf("%s: %lld payloads came too late and were skipped\n",
                  name_of(f.candidate).c_str(), static_cast<long long>(f.result.skipped));
    }
    if (f.result.waits_for.empty()) continue;
    const WaitsFor& wait = f.result.waits_for.front();
    std::printf("%s: %zu waits never end, the first of worker %d for worker %d at step %lld\n",
                name_of(f.candidate).c_str(), f.result.waits_for.size(), wait.worker, wait.peer,
                static_cast<long long>(wait.step));
  }
}

void write_trace_file(const Options& o, const Forecast& f, const HostShape& shape) {
  std::ostringstream text;
  const std::string method = name_of(f.candidate);
  write_trace(text, f.result.timeline, f.result.messages, shape,
              {.method = method, .steps = o.steps, .warm_up = o.warm_up});
  write_text_file("simulate", "the trace", o.trace, packed_for(o.trace, std::move(text).str()));
}

void show(const CLI::App& app, Options& o) {
  const ClusterFile cluster = cluster_of(o.scenario, "simulate");
  const HostShape shape = cluster.cluster.shape();
  Workload workload = workload_on(workload_of(o.scenario, cluster, "simulate"), cluster);
  workload.compute.seed = o.seed;
  slow_down(workload, o.slow, shape.workers());
  if (o.methods.empty()) o.methods = {"ddp", "allreduce", "aer", "ring", "one_peer_exponential"};
  if (!o.trace.empty() && o.methods.size() != 1) {
    fail_argument({.place = "simulate",
                   .what = "--trace is for one method",
                   .got = std::to_string(o.methods.size()) + " methods",
                   .remedy = "name one, and run simulate once for each"});
  }
  const ForecastOptions options = forecast_options(o, shape);
  std::vector<MethodSpec> candidates;
  for (const std::string& method : o.methods) candidates.push_back(parse_method(method));
  std::vector<Forecast> forecasts;
  for (const MethodSpec& candidate : candidates) {
    forecasts.push_back(forecast(cluster.cluster, workload, candidate, options));
    if (!o.trace.empty()) write_trace_file(o, forecasts.back(), shape);
  }
  const std::vector<std::string> assumed = assumptions(app, o.scenario, cluster);
  if (o.json) {
    Json json{
        {"assumed", assumed}, {"cluster", to_toml(cluster)}, {"steps", o.steps}, {"seed", o.seed}};
    for (const Forecast& f : forecasts) json["methods"].push_back(to_json(f));
    std::cout << json.dump() << std::endl;
    return;
  }
  std::printf("%s; %s\n", describe(cluster).c_str(), describe(workload).c_str());
  for (const std::string& line : assumed) std::printf("assumed: %s\n", line.c_str());
  std::printf("\n");
  print_table(forecasts);
}

}  // namespace simulate_command

int run_simulate(int argc, char** argv) {
  using namespace simulate_command;
  CLI::App app("Simulates how long steps take on a cluster, from the very plans of a run.",
               "gossamer simulate");
  Options options;
  add_options(app, options);
  parse_command_line(app, "simulate", argc, argv);
  show(app, options);
  return 0;
}

}  // namespace gossamer
