#include "gossamer/model/published_fit.h"

#include <algorithm>
#include <map>
#include <string>

#include "gossamer/base/errors.h"
#include "gossamer/graph/topology.h"
#include "gossamer/model/link_load.h"
#include "gossamer/model/max_plus.h"
#include "gossamer/model/published.h"

namespace gossamer {
namespace {

constexpr int kBuckets = 5;
constexpr double kSigma = 0.1;
constexpr std::int64_t kElementsPerWorker = 96;  // of a payload whose shards are whole
using Constants = std::span<const double>;

ClusterSpec cluster_of(const HostShape& shape, double rate_bytes_per_s) {
  ClusterSpec cluster;
  for (int workers : shape.workers_per_host) {
    cluster.hosts.push_back({workers, {.rate_bytes_per_s = rate_bytes_per_s}, {}});
  }
  return cluster;
}

/// Per step, the mean over a period of what the busiest link carries of one byte per second.
double seconds_at_one_byte_per_s(const Schedule& schedule, const Workload& work,
                                 const MaxPlusOptions& options) {
  const ClusterSpec cluster = cluster_of(schedule.shape, 1);
  double sum = 0;
  const int rounds = schedule.period > 0 ? schedule.period : options.steps;
  for (int t = 0; t < rounds; ++t) sum += busiest_link_s(cluster, work, schedule, options, t);
  return sum / rounds;
}

/// The mean step where the schedule's traffic keeps the busiest link for `link_s` per step.
double mean_step_s(const Schedule& schedule, const Workload& work, const MaxPlusOptions& options,
                   double link_s) {
  const double rate = link_s > 0 ? seconds_at_one_byte_per_s(schedule, work, options) / link_s
                                 : LinkSpec{}.rate_bytes_per_s;
  return step_times(cluster_of(schedule.shape, rate), work, schedule, options).mean_step_s;
}

/// The ring that the poster measured is Decent-DP's, the one-peer ring.
Schedule schedule_on_poster(const PosterRow& row) {
  return make_topology(row.topology == "ring" ? "one_peer_ring" : row.topology,
                       {.shape = even_hosts(row.hosts, row.workers_per_host)});
}

std::string note_on_poster(std::string_view task) {
  if (task == "en-de") {
    return "The bytes promise more of the ring than was measured; with omega .65 for it, chosen to "
           "fit, all three would be within .1 points.";
  }
  if (task == "en-fr") {
    return "Where computing takes the time the model cannot say what separates the three: all may "
           "lag by a step, and omega does not count. The published order is that of the bytes, as "
           "if exchanges slowed the computing beside them, but not in proportion to them.";
  }
  return "Two numbers and two constants: nothing is tested but that the model has both alike.";
}

PublishedCase poster_case(std::string_view task) {
  PublishedCase result{.problem = {.name = std::string(task),
                                   .constants = {{"gamma", 0.01, 4}, {"sigma", 0.005, 0.4}},
                                   .points = {},
                                   .is_relative = false},
                       .predicted = {},
                       .note = note_on_poster(task)};
  for (const PosterRow& row : poster_rows()) {
    if (row.task != task) continue;
    const Schedule schedule = schedule_on_poster(row);
    const double omega = omega_of_bytes(schedule);
    result.predicted.emplace_back("omega of " + std::string(row.topology), omega);
    result.problem.points.push_back(
        {std::string(row.topology), row.speed_up, [schedule, omega](Constants c) {
           const StepRatios ratios{.gamma = c[0], .omega = omega, .buckets = kBuckets};
           return speed_up_with_jitter(schedule, {.ratios = ratios, .sigma = c[1], .steps = 60});
         }});
  }
  return result;
}

/// The closed forms in ms, from {compute of 1/8 of the batch, compute that does not shrink, time of
/// a payload on a link}.
struct RuntimeModel {
  HostShape shape;
  double slowest = 1 + kSigma * expected_maximum_of_normals(shape.workers());

  StepRatios ratios(Constants c) const {
    const double n = shape.workers();
    return {.gamma = 2 * (n - 1) / n * c[2] / compute_ms(c),
            .omega = omega_of_flat_aer(shape),
            .buckets = kBuckets};
  }
  double compute_ms(Constants c) const { return c[0] * 8 / shape.workers() + c[1]; }
  double allreduce_ms(Constants c) const {
    return compute_ms(c) * allreduce_time(ratios(c), slowest);
  }
  double aer_ms(Constants c) const { return compute_ms(c) * decentralized_time(ratios(c)); }
};

PublishedCase runtime_case(std::string_view hardware) {
  FitProblem problem{
      .name = std::string(hardware),
      .constants = {{"share ms", 10, 500}, {"fixed ms", 5, 100}, {"payload ms", 0.5, 150}},
      .points = {}};
  std::vector<std::pair<std::string, double>> predicted;
  for (const RuntimePoint& point : runtime_points()) {
    if (point.hardware != hardware) continue;
    const RuntimeModel model{even_hosts(point.hosts, point.workers_per_host)};
    const std::string workers = std::to_string(model.shape.workers());
    problem.points.push_back({"allreduce " + workers, point.allreduce_ms,
                              [model](Constants c) { return model.allreduce_ms(c); }});
    problem.points.push_back(
        {"aer " + workers, point.aer_ms, [model](Constants c) { return model.aer_ms(c); }});
    predicted.emplace_back("omega of aer, " + workers + " workers", omega_of_flat_aer(model.shape));
  }
  return {problem, predicted, "Set, not fitted: 5 buckets, sigma .1."};
}

PublishedCase communication_case() {
  FitProblem problem{.name = "256 V100, communication",
                     .constants = {{"allreduce latency ms", 10, 500},
                                   {"partial latency ms", 10, 500},
                                   {"ms per million", 0.1, 10}},
                     .points = {}};
  for (const CommunicationPoint& point : communication_points()) {
    const double millions = point.million_parameters;
    problem.points.push_back(
        {"allreduce " + std::string(point.model), point.allreduce_ms,
         [millions](Constants c) { return c[0] + 2 * 255.0 / 256 * millions * c[2]; }});
    problem.points.push_back({"partial " + std::string(point.model), point.partial_average_ms,
                              [millions](Constants c) { return c[1] + millions * c[2]; }});
  }
  return {problem,
          {{"bytes of an all-reduce over those of a partial average", 2 * 255.0 / 256}},
          "Four numbers and three constants: none of the numbers follows from the other three."};
}

PublishedCase imagenet_case() {
  FitProblem problem{.name = "V100, ImageNet",
                     .constants = {{"compute host-hours", 20, 80},
                                   {"growth per host", 0.05, 5},
                                   {"exchange host-hours", 0.05, 10}},
                     .points = {}};
  for (const ImageNetPoint& point : imagenet_points()) {
    const double neighbours = point.method == "ring" ? 2 : 1;
    const bool is_allreduce = point.method == "allreduce";
    const double hosts = point.hosts;
    problem.points.push_back({std::string(point.method) + " " + std::to_string(point.hosts),
                              point.hours, [=](Constants c) {
                                const double waits =
                                    is_allreduce ? hosts * c[1] : neighbours * c[2];
                                return (c[0] + waits) / hosts;
                              }});
  }
  return {problem, {{"exchanges of a ring over those of a one-peer graph", 2}}, ""};
}

}  // namespace

double omega_of_bytes(const Schedule& schedule) {
  const auto bytes_per_step = [](const Schedule& s) {
    const ExchangedPayload payload{.elements = kElementsPerWorker * s.shape.workers(),
                                   .plan = {.group_method = GroupMethod::ring}};
    std::vector<double> sent(s.shape.workers_per_host.size());
    for (int t = 0; t < s.period; ++t) {
      for (const HostLoad& load : host_loads(round_at(s, t), s.shape, payload)) {
        sent[static_cast<std::size_t>(load.host)] += static_cast<double>(load.sent_bytes);
      }
    }
    return std::ranges::max(sent) / s.period;
  };
  return bytes_per_step(schedule) / bytes_per_step(complete_schedule(schedule.shape));
}

double omega_of_flat_aer(const HostShape& shape) {
  const double n = shape.workers();
  const double pair = 2 * n / shape.hosts();
  return 0.5 * ((pair - 1) / pair) / ((n - 1) / n);
}

StepPair step_times_with_jitter(const Schedule& schedule, const JitterCase& c) {
  const HostShape& shape = schedule.shape;
  const StepRatios& ratios = c.ratios;
  check_argument("model", shape.hosts() >= 2,
                 "gamma and omega are of links between hosts, of which there must be at least 2",
                 std::to_string(shape.hosts()));
  Workload work{.buckets = even_buckets(16LL * shape.workers() * ratios.buckets, ratios.buckets),
                .forward_share = ratios.forward_share};
  work.compute = {.jitter = Jitter::normal, .deviation_s = c.sigma, .seed = c.seed};
  MaxPlusOptions allreduce = allreduce_options();
  allreduce.steps = c.steps;
  allreduce.warm_up = c.warm_up;
  const MaxPlusOptions mixing{
      .launch_at = LaunchAt::backward, .steps = c.steps, .warm_up = c.warm_up};
  return {.allreduce = mean_step_s(complete_schedule(shape), work, allreduce, ratios.gamma),
          .decentralized = mean_step_s(schedule, work, mixing, ratios.omega * ratios.gamma)};
}

double speed_up_with_jitter(const Schedule& schedule, const JitterCase& c) {
  return step_times_with_jitter(schedule, c).speed_up();
}

std::vector<PublishedCase> published_cases() {
  std::vector<PublishedCase> cases;
  for (const char* task : {"en-de", "en-fr", "resnet-50"}) cases.push_back(poster_case(task));
  for (std::size_t k = 0; k < runtime_points().size(); k += 3) {
    cases.push_back(runtime_case(runtime_points()[k].hardware));
  }
  cases.push_back(communication_case());
  cases.push_back(imagenet_case());
  return cases;
}

}  // namespace gossamer
