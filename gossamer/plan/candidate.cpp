#include "gossamer/plan/candidate.h"

#include <charconv>
#include <cmath>
#include <vector>

#include "gossamer/base/errors.h"
#include "gossamer/graph/schedule_spec.h"
#include "gossamer/graph/topology.h"
#include "gossamer/model/link_load.h"

namespace gossamer {
namespace {

constexpr int kLargestNumber = 1'000'000;

enum class Number { none, needed, optional };

/// What may follow the method.
struct Word {
  std::string_view name;
  Number number = Number::none;  ///< 1 where it is optional and left out
  bool wants_schedule = false;   ///< not for averages of gradients
  void (*apply)(Candidate&, int);
};

constexpr Word kWords[] = {
    {"fp32", Number::none, false, [](Candidate& c, int) { c.codec = Codec::fp32; }},
    {"bf16", Number::none, false, [](Candidate& c, int) { c.codec = Codec::bf16; }},
    {"int8", Number::none, false, [](Candidate& c, int) { c.codec = Codec::int8; }},
    {"local", Number::needed, true, [](Candidate& c, int value) { c.local_steps = value; }},
    {"average", Number::needed, true, [](Candidate& c, int value) { c.global_average = value; }},
    {"degree", Number::needed, true, [](Candidate& c, int value) { c.degree = value; }},
    {"gradients", Number::needed, true, [](Candidate& c, int value) { c.gradient_rounds = value; }},
    {"backward", Number::none, true, [](Candidate& c, int) { c.update = SimUpdate::backward; }},
    {"skip", Number::optional, true,
     [](Candidate& c, int value) {
       c.late = SimLate::skip;
       c.staleness = value;
     }},
};

/// The number behind the '=' at `equals`; text.npos: there is none.
int number_of(const Word& word, std::string_view part, std::size_t equals, std::string_view text) {
  const std::string name(word.name);
  const bool is_there = equals != part.npos;
  if (!is_there && word.number != Number::needed) return 1;
  if (is_there && word.number == Number::none) {
    fail_argument({.place = "method",
                   .what = "'" + name + "' takes no number",
                   .got = "'" + std::string(text) + "'"});
  }
  const std::string_view digits = is_there ? part.substr(equals + 1) : "";
  int value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  const bool is_whole = error == std::errc() && end == digits.data() + digits.size();
  if (is_whole && value >= 1 && value <= kLargestNumber) return value;
  fail_argument({.place = "method",
                 .what = "'" + name + "' needs a number from 1 to 1000000",
                 .got = "'" + std::string(text) + "'",
                 .remedy = "for example " + name + "=4"});
}

std::vector<std::string_view> split(std::string_view text) {
  std::vector<std::string_view> parts;
  for (std::size_t from = 0; from <= text.size();) {
    const std::size_t end = std::min(text.find(':', from), text.size());
    parts.push_back(text.substr(from, end - from));
    from = end + 1;
  }
  return parts;
}

void check_simulated(const Topology& topology) {
  if (topology.stochasticity == Stochasticity::doubly) return;
  fail_argument({.place = "method",
                 .what = "topologies for pattern push_sum only are not predicted",
                 .got = "'" + std::string(topology.name) + "'",
                 .remedy = "take one_peer_exponential, which sends as much"});
}

std::string full_name(std::string_view method) {
  if (method == "ddp" || method == "allreduce") return std::string(method);
  std::vector<std::string_view> names{"ddp", "allreduce"};
  for (const Topology& topology : topologies()) {
    if (method == topology.name || (!topology.alias.empty() && method == topology.alias)) {
      check_simulated(topology);
      return std::string(topology.name);
    }
    names.push_back(topology.name);
  }
  fail_unknown_name("method", "method", method, names);
}

const Word& find_word(std::string_view name) {
  std::vector<std::string_view> names;
  for (const Word& word : kWords) {
    if (word.name == name) return word;
    names.push_back(word.name);
  }
  fail_unknown_name("method", "word after a method", name, names);
}

void apply(std::string_view part, std::string_view text, Candidate& candidate) {
  const std::size_t equals = part.find('=');
  const Word& word = find_word(part.substr(0, equals));
  const int value = number_of(word, part, equals, text);
  if (word.wants_schedule && averages_gradients(candidate)) {
    fail_argument({.place = "method",
                   .what = candidate.method + " averages gradients over everybody in every step",
                   .got = "'" + std::string(text) + "'",
                   .remedy = "leave '" + std::string(word.name) + "' out, or take a topology"});
  }
  word.apply(candidate, value);
}

std::string_view short_name(const std::string& method) {
  for (const Topology& topology : topologies()) {
    if (method == topology.name && !topology.alias.empty()) return topology.alias;
  }
  return method;
}

}  // namespace

bool averages_gradients(const Candidate& candidate) {
  return candidate.method == "ddp" || candidate.method == "allreduce";
}

Candidate parse_candidate(std::string_view text) {
  const std::vector<std::string_view> parts = split(text);
  Candidate candidate{.method = full_name(parts.front())};
  for (std::size_t k = 1; k < parts.size(); ++k) apply(parts[k], text, candidate);
  if (candidate.method == "ddp" && candidate.codec != Codec::fp32) {
    fail_argument({.place = "method",
                   .what = "a codec needs hierarchical averages",
                   .got = "'" + std::string(text) + "'",
                   .remedy = "take allreduce:" + std::string(name_of(candidate.codec))});
  }
  return candidate;
}

std::string name_of(const Candidate& candidate) {
  std::string name(short_name(candidate.method));
  if (candidate.degree != 1) name += ":degree=" + std::to_string(candidate.degree);
  if (candidate.codec != Codec::fp32) name += ":" + std::string(name_of(candidate.codec));
  if (candidate.local_steps != 1) name += ":local=" + std::to_string(candidate.local_steps);
  if (candidate.global_average != 0) name += ":average=" + std::to_string(candidate.global_average);
  if (candidate.gradient_rounds != 0) {
    name += ":gradients=" + std::to_string(candidate.gradient_rounds);
  }
  if (candidate.update == SimUpdate::backward) name += ":backward";
  if (candidate.late == SimLate::skip) name += ":skip=" + std::to_string(candidate.staleness);
  return name;
}

std::vector<double> link_rates(const ClusterSpec& cluster) {
  std::vector<double> rates;
  for (const HostSpec& host : cluster.hosts) {
    if (std::isinf(host.link.rate_bytes_per_s)) return {};
    rates.push_back(host.link.rate_bytes_per_s);
  }
  return rates;
}

Schedule schedule_of(const Candidate& candidate, const HostShape& shape,
                     std::span<const double> link_rates) {
  if (averages_gradients(candidate)) return complete_schedule(shape);
  return make_schedule({.topology = candidate.method,
                        .degree = candidate.degree,
                        .link_rates = {link_rates.begin(), link_rates.end()},
                        .rounds_per_step = std::max(1, candidate.gradient_rounds),
                        .local_steps = candidate.local_steps,
                        .global_average = candidate.global_average},
                       shape);
}

ClusterSpec links_for(const Candidate& candidate, const ClusterSpec& cluster,
                      const Workload& workload) {
  ClusterSpec result = cluster;
  if (candidate.method != "ddp") return result;
  for (HostSpec& host : result.hosts) host.link.rate_bytes_per_s *= workload.ddp_link_share;
  return result;
}

SimMethod sim_method(const Candidate& candidate, const ClusterSpec& cluster) {
  SimMethod method{.schedule = schedule_of(candidate, cluster.shape(), link_rates(cluster)),
                   .update = candidate.update,
                   .codec = candidate.codec,
                   .late = candidate.late,
                   .staleness = candidate.staleness};
  if (candidate.gradient_rounds > 0) {
    method.pattern = SimPattern::gradient_gossip;
    method.update = SimUpdate::backward;
  }
  if (candidate.method == "ddp") method.pattern = SimPattern::ddp;
  if (candidate.method == "allreduce") method.pattern = SimPattern::allreduce;
  return method;
}

MaxPlusOptions model_options(const Candidate& candidate) {
  MaxPlusOptions options;
  if (averages_gradients(candidate)) options = allreduce_options();
  if (candidate.update == SimUpdate::backward) options.launch_at = LaunchAt::backward;
  options.plan.codec = candidate.codec;
  if (candidate.method != "ddp") {
    options.plan.group_method = GroupMethod::hierarchical;
    options.one_at_a_time = false;
  }
  options.overhead = kEthernetOverhead;
  return options;
}

}  // namespace gossamer
