#include "gossamer/exchange/group_plans.h"

#include <algorithm>

#include "gossamer/base/errors.h"

namespace gossamer {
namespace {

int index_in(const std::vector<int>& group, int worker) {
  const auto found = std::lower_bound(group.begin(), group.end(), worker);
  GOSSAMER_ASSERT(found != group.end() && *found == worker);
  return static_cast<int>(found - group.begin());
}

double share(const std::vector<int>& group) { return 1.0 / static_cast<double>(group.size()); }

}  // namespace

ElementRange part_of(const ElementRange& whole, int index, int parts) {
  constexpr std::int64_t kAlignment = 16;
  const auto cut = [&](int k) {
    if (k == parts) return whole.end;
    const std::int64_t exact = whole.size() * k / parts;
    return whole.begin + exact / kAlignment * kAlignment;
  };
  return {cut(index), cut(index + 1)};
}

Plan all_to_all_plan(const std::vector<int>& group, int worker, std::int64_t count) {
  Plan plan{.count = count, .scratch = {}, .phases = {}, .pieces = {}};
  Phase phase;
  Sum mean{.into = {1, 0, count}, .scale = share(group)};
  plan.scratch.push_back({count});
  for (int member : group) {
    Slice term{0, 0, count};
    if (member != worker) {
      plan.scratch.push_back({count});
      term.buffer = static_cast<int>(plan.scratch.size());
      phase.sends.push_back({member, 0, {0, 0, count}});
      phase.receives.push_back({member, 0, term});
    }
    mean.terms.push_back(term);
  }
  const Term result{mean.into, 1};
  phase.sums.push_back(std::move(mean));
  plan.phases.push_back(std::move(phase));
  plan.pieces.push_back({.offset = 0, .count = count, .self_weight = 0, .terms = {result}});
  return plan;
}

Plan ring_plan(const std::vector<int>& group, int worker, std::int64_t count) {
  const int members = static_cast<int>(group.size());
  const int me = index_in(group, worker);
  const int next = group[static_cast<std::size_t>((me + 1) % members)];
  const int previous = group[static_cast<std::size_t>((me + members - 1) % members)];
  const auto chunk = [&](int index) {
    return part_of({0, count}, ((index % members) + members) % members, members);
  };
  constexpr int kTotal = 1;
  constexpr int kLanding = 2;
  std::int64_t longest = 0;
  for (int k = 0; k < members; ++k) longest = std::max(longest, chunk(k).size());
  Plan plan{.count = count, .scratch = {{count}, {longest}}, .phases = {}, .pieces = {}};
  // Reduce-scatter: after step p, chunk me − p − 1 holds the sum of p + 2 workers.
  for (int p = 0; p < members - 1; ++p) {
    const ElementRange out = chunk(me - p);
    const ElementRange in = chunk(me - p - 1);
    const Slice landing{kLanding, 0, in.size()};
    const bool last = p == members - 2;
    Phase phase;
    phase.sends.push_back({next, p, {p == 0 ? 0 : kTotal, out.begin, out.size()}});
    phase.receives.push_back({previous, p, landing});
    phase.sums.push_back({.into = {kTotal, in.begin, in.size()},
                          .terms = {landing, {0, in.begin, in.size()}},
                          .scale = last ? share(group) : 1});
    plan.phases.push_back(std::move(phase));
  }
  // All-gather: the finished chunks go once round the ring.
  for (int p = 0; p < members - 1; ++p) {
    const ElementRange out = chunk(me + 1 - p);
    const ElementRange in = chunk(me - p);
    const int slot = members - 1 + p;
    plan.phases.push_back({.sends = {{next, slot, {kTotal, out.begin, out.size()}}},
                           .receives = {{previous, slot, {kTotal, in.begin, in.size()}}}});
  }
  plan.pieces.push_back(
      {.offset = 0, .count = count, .self_weight = 0, .terms = {{{kTotal, 0, count}, 1}}});
  return plan;
}

}  // namespace gossamer
