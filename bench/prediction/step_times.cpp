// How long steps of real engines take, as threads over emulated links, with computing slept. One
// run per call, one JSON object; bench/prediction/run.py compares it with `gossamer simulate`. See
// bench/METRICS.md.
#include <sys/prctl.h>
#include <sys/resource.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <exception>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "gossamer/base/cluster_file.h"
#include "gossamer/base/errors.h"
#include "gossamer/base/json.h"
#include "gossamer/engine/engine.h"
#include "gossamer/engine/worker_threads.h"
#include "gossamer/graph/round.h"
#include "gossamer/model/link_load.h"
#include "gossamer/plan/candidate.h"
#include "gossamer/plan/workload_file.h"
#include "gossamer/sim/moments.h"
#include "gossamer/transport/threads.h"

namespace {

using namespace gossamer;

constexpr double kTotalUpdate = 1;  // lr · steps · mean gradient
constexpr double kTolerance = 1e-4;
constexpr std::int64_t kWordsAtStart = 1000;  // bytes

/// What all workers are told.
struct Run {
  ClusterSpec cluster;
  Workload workload;
  MethodSpec candidate;
  SimMethod method;
  std::int64_t steps = 0;
  std::int64_t warm_up = 0;

  int workers() const { return cluster.shape().workers(); }
  std::int64_t all_steps() const { return steps + warm_up; }
  bool averages() const { return averages_gradients(candidate); }
  bool skips() const { return candidate.late == Late::skip; }
};

/// What a worker measured, and where its parameters ended.
struct Outcome {
  double step_s = 0;
  double compute_s = 0;
  std::int64_t skipped = 0;
  std::int64_t sent_bytes = 0;  ///< to other hosts
  std::vector<float> x;
};

struct Vectors {
  std::vector<float> x, g, spare;
};

Run read_run(char** words) {
  const ClusterFile file = load_cluster(words[1]);
  Run run{.cluster = file.cluster,
          .workload = workload_on(load_workload(words[2]), file),
          .candidate = parse_method(words[3]),
          .steps = std::stoll(words[4]),
          .warm_up = std::stoll(words[5])};
  run.workload.compute.seed = std::stoull(words[6]);
  run.method = sim_method(run.candidate, run.cluster);
  const auto refuse = [](const char* what, const std::string& got) {
    fail_argument({.place = "step_times", .what = what, .got = got});
  };
  if (run.method.pattern->is_ddp) refuse("engines do not run this method", words[3]);
  if (run.workload.update_s > 0) refuse("an update takes what it takes, leave it out", words[2]);
  if (run.workload.dtype != DType::f32) refuse("dtype must be f32", words[2]);
  if (run.steps < 1 || run.warm_up < 0) refuse("there must be steps", words[4]);
  return run;
}

/// The links as payloads see them: threads send no headers, so they get what headers leave of the
/// rate, which is how `gossamer simulate` reads the same file.
ClusterSpec without_headers(ClusterSpec cluster) {
  for (HostSpec& host : cluster.hosts) host.link.rate_bytes_per_s /= kEthernetOverhead;
  return cluster;
}

/// Of worker `rank`, in every step and for every parameter; 1 on average.
double gradient_of(int rank, int workers) {
  return 0.5 + (rank + 0.5) / static_cast<double>(workers);
}

/// One that the pattern goes with; momenta are 0.
std::string optimizer_of(const PatternFacts& pattern) {
  return pattern.optimizers.empty() ? "sgd" : std::string(pattern.optimizers.front());
}

EngineOptions options_of(const Run& run) {
  const double lr = kTotalUpdate / static_cast<double>(run.all_steps());
  const auto outer_every = static_cast<int>(option_of(run.candidate, "outer_every", 0));
  return {.schedule = run.method.schedule,
          .pattern = run.candidate.pattern,
          .optimizer = optimizer_of(*run.method.pattern),
          .groups = {Hyper{.lr = lr, .momentum = 0, .outer_every = outer_every}},
          .update = run.method.update,
          .group_method = run.method.group_method,
          .codec = run.method.codec,
          .stagger = run.method.stagger,
          .late = run.method.late,
          .staleness = run.method.staleness,
          .check_gradients = false};
}

std::vector<Bucket> buckets_of(const Run& run, const std::shared_ptr<Vectors>& memory) {
  std::vector<Bucket> buckets;
  std::int64_t begin = 0;
  for (std::int64_t count : run.workload.buckets) {
    buckets.push_back({.x = {memory->x.data() + begin, memory},
                       .g = memory->g.data() + begin,
                       .count = count,
                       .segments = {{0, count, 0}},
                       .spare = {memory->spare.data() + begin, memory}});
    begin += count;
  }
  return buckets;
}

/// Sleeps as long as the step computes, and tells of each bucket's gradient when its share is over.
/// Where buckets are updated in the backward, the rest of it begins when an update is over; else a
/// worker that woke late makes up for it.
void compute(Engine& engine, const Run& run, SimTime seconds) {
  const ComputeMoments moments = moments_of(run.workload, seconds);
  const bool updates = run.method.update == UpdateAt::backward;
  Clock::time_point since = Clock::now();
  SimTime done{0};
  for (std::size_t b = 0; b < moments.backward.size(); ++b) {
    std::this_thread::sleep_until(since + (moments.backward[b] - done));
    engine.gradient_ready(static_cast<int>(b));
    if (!updates) continue;
    since = Clock::now();
    done = moments.backward[b];
  }
}

Outcome work(const Run& run, Transport& transport) {
  const int rank = transport.describe().rank;
  const auto elements = static_cast<std::size_t>(elements_of(run.workload));
  const auto memory = std::make_shared<Vectors>();
  memory->x.assign(elements, 0);
  memory->spare.assign(elements, 0);
  memory->g.assign(elements, static_cast<float>(gradient_of(rank, run.workers())));
  Engine engine(options_of(run), transport, buckets_of(run, memory));
  engine.start_at(0);
  Outcome outcome;
  Clock::time_point begin = Clock::now();
  for (std::int64_t t = 0; t < run.all_steps(); ++t) {
    if (t == run.warm_up) begin = Clock::now();
    const SimTime seconds = nearest_ns(compute_s(run.workload.compute, rank, t));
    compute(engine, run, seconds);
    const StepReport report = engine.step();
    if (engine.alternates()) std::swap(memory->x, memory->spare);
    outcome.skipped += report.skipped;
    if (t >= run.warm_up) outcome.compute_s += to_seconds(seconds);
  }
  const std::chrono::duration<double> passed = Clock::now() - begin;
  outcome.step_s = passed.count() / static_cast<double>(run.steps);
  outcome.compute_s /= static_cast<double>(run.steps);
  engine.quiesce();
  const HostShape shape = run.cluster.shape();
  for (const auto& edge : transport.describe().edges) {
    if (shape.host_of(edge.peer) != shape.host_of(rank)) outcome.sent_bytes += edge.sent;
  }
  outcome.x = memory->x;
  engine.collectives().barrier();  // others may still need what this one has sent
  return outcome;
}

/// Bytes that a host's workers send to others in exchange `e`, as their Plans say.
std::int64_t planned_bytes(const Run& run, int host, std::int64_t e) {
  const HostShape shape = run.cluster.shape();
  std::int64_t bytes = 0;
  for (std::size_t b = 0; b < run.workload.buckets.size(); ++b) {
    const auto shift = run.method.stagger ? static_cast<std::int64_t>(b) : 0;
    const Round round =
        run.averages() ? complete_round(run.workers()) : round_at(run.method.schedule, e + shift);
    for (int w = 0; w < shape.workers_per_host[static_cast<std::size_t>(host)]; ++w) {
      const Plan plan = compile(round, shape, shape.first_rank(host) + w, run.workload.buckets[b],
                                plan_options(run.method));
      for (const Phase& phase : plan.phases) {
        for (const Message& message : phase.sends) {
          if (shape.host_of(message.peer) == host) continue;
          bytes += static_cast<std::int64_t>(bytes_of(plan, message.slice, DType::f32));
        }
      }
    }
  }
  return bytes;
}

/// By host, bytes per exchange. Throws where it sent other bytes than planned. Who gossips sends
/// ahead for one step more; who skips late neighbours sends at most so much, and some words to
/// agree on how payloads are numbered.
std::vector<double> checked_bytes(const Run& run, const std::vector<Outcome>& outcomes) {
  const PatternFacts& pattern = *run.method.pattern;
  const bool is_ahead = pattern.launch == Launch::after_previous_update;
  const std::int64_t exchanges = run.all_steps() + (is_ahead ? 1 : 0);
  const HostShape shape = run.cluster.shape();
  std::vector<double> per_exchange;
  for (int h = 0; h < shape.hosts(); ++h) {
    std::int64_t sent = 0;
    for (int w = 0; w < shape.workers_per_host[static_cast<std::size_t>(h)]; ++w) {
      sent += outcomes[static_cast<std::size_t>(shape.first_rank(h) + w)].sent_bytes;
    }
    std::int64_t planned = 0;
    for (std::int64_t e = 0; e < exchanges; ++e) {
      planned += planned_bytes(run, h, e) * std::ssize(pattern.payloads);
      if (e < run.all_steps()) planned += planned_bytes(run, h, e) * std::ssize(pattern.then);
    }
    const bool agrees = run.skips() ? sent <= planned + kWordsAtStart : sent == planned;
    if (!agrees) {
      throw std::runtime_error("host " + std::to_string(h) + " sent " + std::to_string(sent) +
                               " bytes where its plans have " + std::to_string(planned));
    }
    per_exchange.push_back(static_cast<double>(sent) / static_cast<double>(exchanges));
  }
  return per_exchange;
}

/// As many times its own steps as somebody's parameters can have gone through: who is slow has
/// mixed with those who are done, and goes on alone. With speeds of two kinds.
double most_steps(const Run& run) {
  const std::vector<double>& factors = run.workload.compute.factors;
  if (factors.empty()) return 1;
  const auto [least, most] = std::ranges::minmax(factors);
  return 2 - least / most;
}

/// How far the mean over the workers is from where the mean gradients lead. Who skips late
/// neighbours does not keep the mean: how far anybody is beyond all gradients, then. What steps by
/// moments or from an anchor leads elsewhere, and is not looked at.
double error_of(const Run& run, const std::vector<Outcome>& outcomes) {
  const PatternFacts& pattern = *run.method.pattern;
  if (!pattern.optimizers.empty() || !pattern.options.empty() || pattern.weighs) return 0;
  const double largest =
      most_steps(run) * gradient_of(run.workers() - 1, run.workers()) * kTotalUpdate;
  double worst = 0;
  for (std::size_t k = 0; k < outcomes[0].x.size(); ++k) {
    double sum = 0;
    for (const Outcome& each : outcomes) {
      sum += each.x[k];
      if (run.skips()) worst = std::max({worst, 1.0 * each.x[k], -each.x[k] - largest});
    }
    if (run.skips()) continue;
    worst = std::max(worst, std::abs(sum / run.workers() + kTotalUpdate));
  }
  return worst;
}

double cpu_seconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + 1e-6 * static_cast<double>(t.tv_usec);
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

double mean_of(const std::vector<Outcome>& outcomes, double Outcome::*member) {
  double sum = 0;
  for (const Outcome& each : outcomes) sum += each.*member;
  return sum / static_cast<double>(outcomes.size());
}

Json measure(const Run& run) {
  auto transports = make_threads_transports(without_headers(run.cluster), {.emulate_links = true});
  std::vector<Outcome> outcomes(static_cast<std::size_t>(run.workers()));
  const auto begin = Clock::now();
  run_workers(std::move(transports), [&](Transport& transport) {
    outcomes[static_cast<std::size_t>(transport.describe().rank)] = work(run, transport);
  });
  const std::chrono::duration<double> passed = Clock::now() - begin;
  const double cpu_load = cpu_seconds() / passed.count();
  const double error = error_of(run, outcomes);
  if (!(error <= kTolerance)) {
    throw std::runtime_error("the parameters are off by " + std::to_string(error));
  }
  std::int64_t skipped = 0;
  for (const Outcome& each : outcomes) skipped += each.skipped;
  return {{"method", name_of(run.candidate)},
          {"steps", run.steps},
          {"step_s", mean_of(outcomes, &Outcome::step_s)},
          {"compute_s", mean_of(outcomes, &Outcome::compute_s)},
          {"bytes_per_host_per_step", checked_bytes(run, outcomes)},
          {"skipped", skipped},
          {"error", error},
          {"cpu_load", cpu_load}};
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 7) {
    std::fprintf(stderr,
                 "usage: step_times CLUSTER.toml WORKLOAD.toml METHOD STEPS WARM_UP SEED\n");
    return 2;
  }
  prctl(PR_SET_TIMERSLACK, 1UL);  // threads inherit it: sleeps end when they should
  try {
    std::printf("%s\n", measure(read_run(argv)).dump().c_str());
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
  return 0;
}
