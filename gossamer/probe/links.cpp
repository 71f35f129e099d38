#include "gossamer/probe/links.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "gossamer/base/units.h"
#include "gossamer/probe/transfer.h"

namespace gossamer {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr std::int64_t kLeastBytes = 16 << 10;
constexpr std::int64_t kMostBytes = 4 << 20;
constexpr std::int64_t kLeastMessages =
    8;  // of a transfer at least, as long as they are large enough
constexpr std::int64_t kLongFactor = 4;
constexpr int kMostTries = 16;
constexpr int kShortTimes = 3;
constexpr int kLongTimes = 3;
constexpr double kAlikeRates = 0.05;
constexpr double kAlikeLatencies = 0.4;

/// What this worker sends in a part of the probe, and how much of it.
struct Task {
  Transfer transfer;
  std::vector<int> group;  ///< the workers whose transfers are as large as this one's
  std::int64_t bytes = kLeastBytes;
};

Transfer sized(const Transfer& transfer, std::int64_t bytes) {
  Transfer result = transfer;
  result.message_bytes = std::clamp(bytes / kLeastMessages, kLeastBytes, kMostBytes);
  result.messages = std::max<std::int64_t>(1, bytes / result.message_bytes);
  return result;
}

double total_bytes(const Transfer& transfer) {
  return static_cast<double>(transfer.messages * transfer.message_bytes);
}

// Three digits, as they stand in a file.

std::vector<double> rounded_rates(std::vector<double> rates) {
  for (double& rate : rates) rate = parse_rate(format_rate(rate));
  return rates;
}

/// What has not been measured is 0.
std::vector<double> rounded_latencies(std::vector<double> latencies) {
  for (double& s : latencies) s = std::isfinite(s) ? parse_duration(format_duration(s)) : 0;
  return latencies;
}

class LinkProbe {
 public:
  LinkProbe(ExchangeRunner& runner, Collectives& collectives, const LinkProbeOptions& options)
      : collectives_(collectives),
        options_(options),
        shape_(collectives.shape()),
        rank_(collectives.rank()),
        host_(shape_.host_of(rank_)),
        transfers_(runner, kMostBytes) {}

  ClusterSpec run() {
    const auto hosts = static_cast<std::size_t>(shape_.hosts());
    std::vector<double> rates(hosts, 0);
    std::vector<double> latencies(hosts, kInfinity);
    const auto rounds = rounds_of_pairs(shape_.hosts());
    const std::size_t count =
        std::min(rounds.size(), static_cast<std::size_t>(std::max(1, options_.most_rounds)));
    for (std::size_t k = 0; k < count; ++k) {
      measure_pairs(rounds[k * rounds.size() / count], rates, latencies);
    }
    const LinkSpec inside = measure_inside();
    return cluster(rates, latencies, share(inside.rate_bytes_per_s), share(inside.latency_s));
  }

 private:
  /// By rank.
  std::vector<double> share(double own) {
    const auto n = static_cast<std::size_t>(shape_.workers());
    std::vector<double> all(n, 0);
    all[static_cast<std::size_t>(rank_)] = own * static_cast<double>(n);
    collectives_.mean(all);
    return all;
  }

  std::vector<int> ranks_of(int host) const {
    std::vector<int> ranks(
        static_cast<std::size_t>(shape_.workers_per_host[static_cast<std::size_t>(host)]));
    std::iota(ranks.begin(), ranks.end(), shape_.first_rank(host));
    return ranks;
  }

  void measure_pairs(const std::vector<std::pair<int, int>>& pairs, std::vector<double>& rates,
                     std::vector<double>& latencies) {
    Task task;
    bool leads = false;
    for (const auto& [a, b] : pairs) {
      if (host_ != a && host_ != b) continue;
      leads = host_ == a;
      const std::vector<int> others = ranks_of(leads ? b : a);
      const auto local = static_cast<std::size_t>(shape_.local_rank_of(rank_));
      if (local < others.size()) task.transfer = {.to = others[local], .from = others[local]};
      task.group = ranks_of(host_);
      task.group.insert(task.group.end(), others.begin(), others.end());
    }
    const std::vector<double> one_way = share(latency(task.transfer.to, leads));
    const std::vector<double> own = share(rate(task));
    for (const auto& [a, b] : pairs) {
      double both[2] = {0, 0};
      double quickest = kInfinity;
      for (const int host : {a, b}) {
        for (const int rank : ranks_of(host)) {
          const double seconds = one_way[static_cast<std::size_t>(rank)];
          both[host == a ? 0 : 1] += own[static_cast<std::size_t>(rank)];
          if (seconds > 0) quickest = std::min(quickest, seconds);
        }
      }
      for (const int host : {a, b}) {
        const auto h = static_cast<std::size_t>(host);
        rates[h] = std::max(rates[h], std::min(both[0], both[1]));
        latencies[h] = std::min(latencies[h], quickest);
      }
    }
  }

  LinkSpec measure_inside() {
    Task task;
    const std::vector<int> mates = ranks_of(host_);
    const auto n = mates.size();
    const auto local = static_cast<std::size_t>(rank_ - mates.front());
    if (n > 1) {
      task.transfer = {.to = mates[(local + 1) % n], .from = mates[(local + n - 1) % n]};
      task.group = mates;
    }
    const bool has_partner = local / 2 * 2 + 1 < n;
    const int partner = has_partner && n > 1 ? mates[local ^ 1] : -1;
    const double seconds = latency(partner, local % 2 == 0);
    return {rate(task), seconds};
  }

  /// 0 where there is no peer.
  double latency(int peer, bool leads) {
    collectives_.barrier();
    const std::int64_t number = next_++;
    return peer < 0 ? 0 : transfers_.one_way_s(number, peer, leads);
  }

  double timed(const Transfer& transfer) {
    collectives_.barrier();
    return transfers_.run(next_++, transfer);
  }

  /// Seconds of a transfer of this size, until the slowest of the group is done. Something else may
  /// hold a transfer up, but nothing makes it faster: the quickest of several counts.
  double quickest(const Task& task, const Transfer& transfer, int times) {
    double least = kInfinity;
    for (int k = 0; k < times; ++k) {
      least = std::min(least, slowest(share(timed(transfer)), task.group));
    }
    return least;
  }

  /// Bytes per second that come to this worker while its group transfers; 0 where it has none.
  double rate(Task task) {
    const double long_enough = options_.transfer_s / kLongFactor;
    double short_s = 0;
    for (int k = 0; k < kMostTries; ++k) {
      const bool is_found = task.group.empty() || short_s >= long_enough;
      if (std::ranges::count(share(is_found ? 1 : 0), 0.0) == 0) break;
      if (!is_found && short_s > 0) {
        const double more = std::clamp(1.2 * long_enough / short_s, 1.2, 8.0);
        task.bytes = std::llround(static_cast<double>(task.bytes) * more);
      }
      const Transfer next = is_found ? Transfer{} : sized(task.transfer, task.bytes);
      const double seconds = quickest(task, next, kShortTimes);
      if (!is_found) short_s = std::max(seconds, 1e-9);
    }
    const Transfer few = sized(task.transfer, task.bytes);
    Transfer many = few;
    many.messages *= kLongFactor;
    const double long_s = quickest(task, many, kLongTimes);
    if (task.transfer.from < 0) return 0;
    const double more_s = long_s - short_s;
    // Where others got in the way of the short one all the same, the long one counts as a whole.
    return more_s > long_s / 2 ? (total_bytes(many) - total_bytes(few)) / more_s
                               : total_bytes(many) / long_s;
  }

  static double slowest(const std::vector<double>& seconds, const std::vector<int>& group) {
    double most = 0;
    for (const int rank : group) most = std::max(most, seconds[static_cast<std::size_t>(rank)]);
    return most;
  }

  ClusterSpec cluster(std::vector<double> rates, std::vector<double> latencies,
                      const std::vector<double>& inside_rates,
                      const std::vector<double>& inside_latencies) const {
    std::vector<double> inside(rates.size(), 0);
    std::vector<double> inside_latency(rates.size(), kInfinity);
    for (int rank = 0; rank < shape_.workers(); ++rank) {
      const auto h = static_cast<std::size_t>(shape_.host_of(rank));
      const auto r = static_cast<std::size_t>(rank);
      inside[h] += inside_rates[r] / shape_.workers_per_host[h];
      if (inside_latencies[r] > 0) {
        inside_latency[h] = std::min(inside_latency[h], inside_latencies[r]);
      }
    }
    for (double& rate : rates) rate = rate > 0 ? rate * options_.overhead : kInfinity;
    for (double& rate : inside) rate = rate > 0 ? rate : kInfinity;
    rates = rounded_rates(even_out(rates, kAlikeRates));
    latencies = rounded_latencies(even_out(latencies, kAlikeLatencies));
    inside = rounded_rates(even_out(inside, kAlikeRates));
    inside_latency = rounded_latencies(even_out(inside_latency, kAlikeLatencies));
    ClusterSpec result;
    for (std::size_t h = 0; h < rates.size(); ++h) {
      result.hosts.push_back({.workers = shape_.workers_per_host[h],
                              .link = {rates[h], latencies[h]},
                              .inside = {inside[h], inside_latency[h]}});
    }
    return result;
  }

  Collectives& collectives_;
  const LinkProbeOptions options_;
  const HostShape shape_;
  const int rank_;
  const int host_;
  Transfers transfers_;
  std::int64_t next_ = 0;  ///< transfer; the same on all workers
};

}  // namespace

std::vector<std::vector<std::pair<int, int>>> rounds_of_pairs(int hosts) {
  std::vector<std::vector<std::pair<int, int>>> rounds;
  if (hosts < 2) return rounds;
  const int even = hosts + hosts % 2;  // the last of an odd number talks to nobody
  for (int r = 0; r < even - 1; ++r) {
    auto& round = rounds.emplace_back();
    for (int k = 0; k < even / 2; ++k) {
      const int a = k == 0 ? even - 1 : (r + k) % (even - 1);
      const int b = (r + even - 1 - k) % (even - 1);
      if (a < hosts && b < hosts) round.emplace_back(std::min(a, b), std::max(a, b));
    }
  }
  return rounds;
}

std::vector<double> even_out(const std::vector<double>& values, double tolerance) {
  std::vector<std::size_t> order(values.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::sort(order, {}, [&](std::size_t i) { return values[i]; });
  std::vector<double> result = values;
  for (std::size_t begin = 0; begin < order.size();) {
    const double least = values[order[begin]];
    std::size_t end = begin;
    double sum = 0;
    for (; end < order.size() && values[order[end]] <= least * (1 + tolerance); ++end) {
      sum += values[order[end]];
    }
    const double mean = sum / static_cast<double>(end - begin);
    for (; begin < end; ++begin) result[order[begin]] = mean;
  }
  return result;
}

void merge_devices(Collectives& collectives, const LinkSpec& own, ClusterSpec& cluster) {
  const HostShape& shape = collectives.shape();
  const auto hosts = static_cast<std::size_t>(shape.hosts());
  const auto host = static_cast<std::size_t>(shape.host_of(collectives.rank()));
  const double share = static_cast<double>(shape.workers()) / shape.workers_per_host[host];
  std::vector<double> sums(2 * hosts, 0);  // of 1 / rate and of latency, which are finite
  sums[host] = share / own.rate_bytes_per_s;
  sums[hosts + host] = share * own.latency_s;
  collectives.mean(sums);
  std::vector<double> rates;
  for (std::size_t h = 0; h < hosts; ++h) rates.push_back(1 / sums[h]);
  rates = rounded_rates(even_out(rates, kAlikeRates));
  const std::vector<double> latencies = rounded_latencies(
      even_out({sums.begin() + static_cast<std::ptrdiff_t>(hosts), sums.end()}, kAlikeLatencies));
  for (std::size_t h = 0; h < hosts; ++h) cluster.hosts[h].device = {rates[h], latencies[h]};
}

ClusterSpec probe_links(ExchangeRunner& runner, Collectives& collectives,
                        const LinkProbeOptions& options) {
  return LinkProbe(runner, collectives, options).run();
}

}  // namespace gossamer
