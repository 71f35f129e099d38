#include <algorithm>
#include <numeric>
#include <string>
#include <utility>

#include "gossamer/base/errors.h"
#include "gossamer/base/rng.h"
#include "gossamer/graph/topologies/topologies.h"

namespace gossamer {
namespace {

/// Everybody sends to `degree` others and keeps an equal share: columns sum to 1.
Round directed_round(int workers, int degree, std::uint64_t seed, std::int64_t t) {
  Rng rng(seed, static_cast<std::uint64_t>(t));
  const double share = 1.0 / (1 + degree);
  std::vector<std::vector<Entry>> rows(static_cast<std::size_t>(workers));
  std::vector<int> others(static_cast<std::size_t>(workers));
  std::iota(others.begin(), others.end(), 0);
  for (int sender = 0; sender < workers; ++sender) {
    rows[static_cast<std::size_t>(sender)].push_back({sender, share});
    std::iter_swap(std::ranges::find(others, sender), others.begin());
    for (int k = 1; k <= degree; ++k) {
      const auto left = static_cast<std::uint64_t>(workers - k);
      std::swap(others[static_cast<std::size_t>(k)],
                others[static_cast<std::size_t>(k) + rng.below(left)]);
      rows[static_cast<std::size_t>(others[static_cast<std::size_t>(k)])].push_back(
          {sender, share});
    }
  }
  return sparse_round(workers, std::move(rows));
}

}  // namespace

Schedule make_random_directed(const TopologyArgs& args) {
  if (args.degree < 1) {
    fail_argument({.place = "topology",
                   .what = "random_directed needs a degree of at least 1",
                   .got = std::to_string(args.degree)});
  }
  const int n = args.shape.workers();
  const int degree = std::min(args.degree, n - 1);
  return {.name = "random_directed",
          .shape = args.shape,
          .period = 0,
          .stochasticity = Stochasticity::column,
          .round = [n, degree, seed = args.seed](std::int64_t t, std::span<const AgreedLoss>) {
            return directed_round(n, degree, seed, t);
          }};
}

}  // namespace gossamer
