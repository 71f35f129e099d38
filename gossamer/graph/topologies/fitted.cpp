/// Pairs of hosts as often as their links allow. Note [Fitted]: a host with the fastest link
/// averages with another one in every second round, as in AER, so that it sends half a payload per
/// step; one whose link has a share r of that rate does so in a share r of those rounds, so that
/// all links are equally busy. Schedule: in every phase each host earns its share, and those who
/// have earned a whole turn are paired, the richest first, each with the host it has been apart
/// from for longest among those who have one too. A phase takes two rounds, in which its pairs take
/// turns; whoever is not paired averages inside the host. Every round is a partition, so doubly
/// stochastic, and a period joins all hosts. With equal links hosts are in as many pairs as in AER.

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <numeric>

#include "gossamer/base/errors.h"
#include "gossamer/graph/topologies/host_pairs.h"
#include "gossamer/graph/topologies/topologies.h"

namespace gossamer {
namespace {

using Pairs = std::vector<std::pair<int, int>>;

constexpr double kSlowest = 1.0 / 64;  // a host with a slower link takes part as if it had this
constexpr double kMostSaved = 2;       // turns; of a host that found nobody
constexpr double kTurnRounding = 1e-9;

/// By host, its link's rate over the fastest.
std::vector<double> shares_of(const TopologyArgs& args) {
  const auto hosts = static_cast<std::size_t>(args.shape.hosts());
  if (args.link_rates.empty()) return std::vector<double>(hosts, 1);
  const bool good = std::ranges::all_of(args.link_rates, [](double rate) { return rate > 0; });
  if (args.link_rates.size() != hosts || !good) {
    fail_argument({.place = "topology",
                   .what = "fitted takes one positive rate for each of the " +
                           std::to_string(hosts) + " hosts",
                   .got = std::to_string(args.link_rates.size()) + " rates"});
  }
  const double fastest = std::ranges::max(args.link_rates);
  std::vector<double> shares;
  for (double rate : args.link_rates) {
    const bool is_fastest = rate == fastest;  // also where both are infinite
    shares.push_back(is_fastest ? 1 : std::max(kSlowest, rate / fastest));
  }
  return shares;
}

/// So many that the slowest host gets its turn and disagreement can cross all hosts.
int phases_for(const std::vector<double>& shares) {
  const auto turn = static_cast<int>(std::ceil(1 / std::ranges::min(shares) - kTurnRounding));
  const int crossing = 2 * static_cast<int>(std::bit_width(shares.size()));
  return turn * ((crossing + turn - 1) / turn);
}

class Matchmaker {
 public:
  explicit Matchmaker(std::vector<double> shares)
      : shares_(std::move(shares)),
        saved_(shares_.size()),
        last_(shares_.size(), std::vector<int>(shares_.size(), -1)) {
    // Slow hosts begin at different moments, so that they do not all come at once.
    for (std::size_t h = 0; h < shares_.size(); ++h) {
      const auto part = static_cast<double>(h) / static_cast<double>(shares_.size());
      saved_[h] = shares_[h] < 1 ? part : 0;
    }
  }

  Pairs next() {
    std::vector<int> ready;
    for (std::size_t h = 0; h < shares_.size(); ++h) {
      saved_[h] = std::min(saved_[h] + shares_[h], kMostSaved);
      if (saved_[h] >= 1 - kTurnRounding) ready.push_back(static_cast<int>(h));
    }
    std::ranges::stable_sort(ready, std::greater{}, [&](int h) { return saved_at(h); });
    Pairs pairs;
    while (ready.size() > 1) {
      const int first = ready.front();
      const auto partner = std::ranges::min_element(
          ready.begin() + 1, ready.end(), {}, [&](int other) { return last_at(first, other); });
      pairs.emplace_back(first, *partner);
      join(first, *partner);
      ready.erase(partner);
      ready.erase(ready.begin());
    }
    ++phase_;
    return pairs;
  }

 private:
  double& saved_at(int h) { return saved_[static_cast<std::size_t>(h)]; }
  int& last_at(int a, int b) {
    return last_[static_cast<std::size_t>(std::min(a, b))]
                [static_cast<std::size_t>(std::max(a, b))];
  }
  void join(int a, int b) {
    last_at(a, b) = phase_;
    saved_at(a) -= 1;
    saved_at(b) -= 1;
  }

  std::vector<double> shares_;
  std::vector<double> saved_;
  std::vector<std::vector<int>> last_;  ///< phase in which a pair, the smaller first, was last one
  int phase_ = 0;
};

/// Joins the parts of the cluster that no pair joins, by a phase for each.
void join_all(std::vector<Pairs>& phases, int hosts) {
  std::vector<int> part(static_cast<std::size_t>(hosts));
  std::iota(part.begin(), part.end(), 0);
  const auto merge = [&](int a, int b) {
    const int from = part[static_cast<std::size_t>(b)];
    const int to = part[static_cast<std::size_t>(a)];
    std::ranges::replace(part, from, to);
  };
  for (const Pairs& pairs : phases) {
    for (const auto& [a, b] : pairs) merge(a, b);
  }
  for (int h = 1; h < hosts; ++h) {
    if (part[static_cast<std::size_t>(h)] == part[0]) continue;
    phases.push_back({{0, h}});
    merge(0, h);
  }
}

/// The pairs of a phase's two rounds: those of slow hosts always in the same one, so that the time
/// between their turns is even, and about as many in both.
std::array<Pairs, 2> turns_of(const Pairs& pairs, const std::vector<double>& shares) {
  std::array<Pairs, 2> turns;
  const auto share = [&](int host) { return shares[static_cast<std::size_t>(host)]; };
  const auto slower = [&](const std::pair<int, int>& p) {
    return share(p.second) < share(p.first) ? p.second : p.first;
  };
  for (const auto& pair : pairs) {
    const int host = slower(pair);
    if (share(host) < 1) turns[static_cast<std::size_t>(host % 2)].push_back(pair);
  }
  for (const auto& pair : pairs) {
    if (share(slower(pair)) < 1) continue;
    turns[turns[1].size() < turns[0].size() ? 1 : 0].push_back(pair);
  }
  return turns;
}

Round round_of(const Pairs& pairs, const HostShape& shape) {
  std::vector<std::vector<int>> groups;
  const std::vector<int> begins = first_ranks(shape);
  std::vector<char> is_paired(shape.workers_per_host.size(), 0);
  for (const auto& [first, second] : pairs) {
    groups.emplace_back();
    for (int host : {first, second}) {
      append_workers(groups.back(), shape, begins, host);
      is_paired[static_cast<std::size_t>(host)] = 1;
    }
    std::ranges::sort(groups.back());
  }
  for (int host = 0; host < shape.hosts(); ++host) {
    if (is_paired[static_cast<std::size_t>(host)]) continue;
    groups.emplace_back();
    append_workers(groups.back(), shape, begins, host);
  }
  return partition_round(shape.workers(), std::move(groups));
}

}  // namespace

Schedule make_fitted(const TopologyArgs& args) {
  const std::vector<double> shares = shares_of(args);
  Matchmaker matchmaker(shares);
  std::vector<Pairs> phases;
  for (int phase = phases_for(shares); phase > 0; --phase) phases.push_back(matchmaker.next());
  join_all(phases, args.shape.hosts());
  std::vector<Round> rounds;
  for (const Pairs& pairs : phases) {
    for (const Pairs& turn : turns_of(pairs, shares)) rounds.push_back(round_of(turn, args.shape));
  }
  return periodic_schedule("fitted", args.shape, std::move(rounds));
}

}  // namespace gossamer
