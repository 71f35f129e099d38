/// Alternating exponential ring (AER). Note [AER on any hosts]: the number of hosts H is written as
/// a product of primes, and a layer joins hosts that differ in one digit of the host number. In a
/// layer of pairs (factor 2) the pairs {j, j XOR 2^r} take turns: half of them average over both
/// hosts while the other half average inside each host, and the other way round in the next round.
/// That is AER where H is a power of two, with J after 2 log2 H rounds and half a payload per host
/// and step. Larger groups cost 2(f − 1)/f payloads per host, so they take turns over
/// ceil(4(f − 1)/f) rounds, which keeps every layer at or below half a payload per host and step.
/// A prime above 7 would join too many hosts at once; it becomes two layers, blocks of about √f
/// hosts and then one host of every block, which contract strongly but not to J.
/// Exact over a period: all hosts equal and H has no prime factor above 7; with unequal hosts H = 1
/// or a prime up to 7 (a single group), or worker numbers that are a product of one number per
/// digit. Every round of every size is a partition, so always doubly stochastic; every period
/// contracts, since its layers join all hosts.

#include <algorithm>
#include <cmath>

#include "gossamer/graph/topologies/host_pairs.h"
#include "gossamer/graph/topologies/topologies.h"

namespace gossamer {
namespace {

constexpr int kLargestGroup = 7;

/// A partition of the hosts into groups that average at some time during the layer's rounds.
using Layer = std::vector<std::vector<int>>;

std::vector<int> prime_factors(int n) {
  std::vector<int> factors;
  for (int p = 2; p * p <= n; ++p) {
    for (; n % p == 0; n /= p) factors.push_back(p);
  }
  if (n > 1) factors.push_back(n);
  return factors;
}

/// Hosts that agree in everything but the digit at `stride`, and there fall into the same class.
template <class ClassOf>
Layer layer_by_digit(int hosts, int stride, int factor, int classes, const ClassOf& class_of) {
  Layer layer;
  for (int rest = 0; rest < hosts / factor; ++rest) {
    const int base = rest / stride * stride * factor + rest % stride;
    const std::size_t begin = layer.size();
    layer.resize(begin + static_cast<std::size_t>(classes));
    for (int digit = 0; digit < factor; ++digit) {
      layer[begin + static_cast<std::size_t>(class_of(digit))].push_back(base + digit * stride);
    }
  }
  return layer;
}

void add_layers(std::vector<Layer>& layers, int hosts, int stride, int factor) {
  if (factor <= kLargestGroup) {
    layers.push_back(layer_by_digit(hosts, stride, factor, 1, [](int) { return 0; }));
    return;
  }
  const int blocks = static_cast<int>(std::lround(std::sqrt(factor)));
  const int across = (factor + blocks - 1) / blocks;
  layers.push_back(layer_by_digit(hosts, stride, factor, blocks, [&](int digit) {
    return static_cast<int>(std::int64_t{digit} * blocks / factor);
  }));
  layers.push_back(
      layer_by_digit(hosts, stride, factor, across, [&](int digit) { return digit % across; }));
}

/// How many rounds the groups of a layer take turns over: ceil(4(f − 1)/f) for groups of f hosts.
int turns(const Layer& layer) {
  std::size_t largest = 0;
  for (const std::vector<int>& group : layer) largest = std::max(largest, group.size());
  return static_cast<int>((4 * (largest - 1) + largest - 1) / largest);
}

/// The groups whose turn it is average over their hosts, the others inside each host.
Round turn_of(const Layer& layer, const HostShape& shape, int turn) {
  std::vector<std::vector<int>> groups;
  const std::vector<int> first = first_ranks(shape);
  const int total = turns(layer);
  for (std::size_t index = 0; index < layer.size(); ++index) {
    const bool joined = static_cast<int>(index) % total == turn;
    if (joined) groups.emplace_back();
    for (int host : layer[index]) {
      if (!joined) groups.emplace_back();
      append_workers(groups.back(), shape, first, host);
    }
  }
  return partition_round(shape.workers(), std::move(groups));
}

}  // namespace

Schedule make_alternating_exponential_ring(const TopologyArgs& args) {
  const int hosts = args.shape.hosts();
  std::vector<Layer> layers;
  int stride = 1;
  for (int factor : prime_factors(hosts)) {
    add_layers(layers, hosts, stride, factor);
    stride *= factor;
  }
  std::vector<Round> rounds;
  for (const Layer& layer : layers) {
    for (int turn = 0; turn < turns(layer); ++turn) {
      rounds.push_back(turn_of(layer, args.shape, turn));
    }
  }
  if (rounds.empty()) rounds.push_back(complete_round(args.shape.workers()));
  return periodic_schedule("alternating_exponential_ring", args.shape, std::move(rounds));
}

}  // namespace gossamer
