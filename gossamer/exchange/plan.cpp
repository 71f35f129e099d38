#include "gossamer/exchange/plan.h"

#include <algorithm>

#include "gossamer/base/errors.h"
#include "gossamer/exchange/group_plans.h"

namespace gossamer {
namespace {

Plan keep_own(std::int64_t count) {
  return {.count = count,
          .scratch = {},
          .phases = {},
          .pieces = {{.offset = 0, .count = count, .self_weight = 1}}};
}

/// Those who want what this worker sends, with their weights for it.
std::vector<Entry> receivers_of(const Round& round, int worker) {
  std::vector<Entry> receivers;
  if (is_partition(round)) {
    receivers = row_of(round, worker);  // W is symmetric
  } else {
    for (int receiver = 0; receiver < round.workers; ++receiver) {
      const std::vector<Entry>& row = round.rows[static_cast<std::size_t>(receiver)];
      const auto mine = std::lower_bound(row.begin(), row.end(), worker,
                                         [](const Entry& e, int w) { return e.worker < w; });
      if (mine != row.end() && mine->worker == worker)
        receivers.push_back({receiver, mine->weight});
    }
  }
  std::erase_if(receivers, [&](const Entry& entry) { return entry.worker == worker; });
  return receivers;
}

/// Neighbours swap whole payloads; the weighted sum is left to the fused pass. Payloads that cross
/// hosts are coded, and each coded edge moves w · (q_j − q_i), whatever the others do: what leaves
/// with the weight of a receiver is taken from this worker's own.
Plan direct_plan(const Round& round, const HostShape& shape, int worker, std::int64_t count,
                 Codec codec) {
  Plan plan{.count = count, .codec = codec, .scratch = {}, .phases = {}, .pieces = {}};
  const auto is_coded = [&](int peer) {
    return codec != Codec::fp32 && shape.host_of(peer) != shape.host_of(worker);
  };
  const auto new_scratch = [&](bool coded) {
    plan.scratch.push_back({count, coded});
    return Slice{static_cast<int>(plan.scratch.size()), 0, count};
  };
  Phase phase;
  Piece piece{.offset = 0, .count = count, .self_weight = 0};
  for (const Entry& entry : row_of(round, worker)) {
    if (entry.worker == worker) {
      piece.self_weight = entry.weight;
      continue;
    }
    const Slice landing = new_scratch(is_coded(entry.worker));
    phase.receives.push_back({entry.worker, 0, landing});
    piece.terms.push_back({landing, entry.weight});
  }
  Slice coded;
  double leaves_coded = 0;
  for (const Entry& receiver : receivers_of(round, worker)) {
    Slice payload{0, 0, count};
    if (is_coded(receiver.worker)) {
      if (coded.buffer == 0) coded = new_scratch(true);
      payload = coded;
      leaves_coded += receiver.weight;
    }
    phase.sends.push_back({receiver.worker, 0, payload});
  }
  if (coded.buffer != 0) {
    phase.codings.push_back({.from = {0, 0, count}, .into = coded.buffer});
    piece.self_weight += leaves_coded;
    piece.terms.push_back({coded, -leaves_coded});
  }
  if (!phase.sends.empty() || !phase.receives.empty()) plan.phases.push_back(std::move(phase));
  plan.pieces.push_back(std::move(piece));
  return plan;
}

}  // namespace

Plan compile(const Round& round, const HostShape& shape, int worker, std::int64_t count,
             const PlanOptions& options) {
  GOSSAMER_ASSERT(worker >= 0 && worker < round.workers && round.workers == shape.workers());
  GOSSAMER_ASSERT(count >= 0);
  const Codec codec = options.codec;
  GOSSAMER_ASSERT(codec == Codec::fp32 || options.group_method == GroupMethod::hierarchical);
  if (!is_partition(round) || options.separate_neighbours) {
    return direct_plan(round, shape, worker, count, codec);
  }
  const std::vector<int>& group = group_of(round, worker);
  if (group.size() == 1) return keep_own(count);
  if (group.size() == 2 && !options.finished_averages) {
    return direct_plan(round, shape, worker, count, codec);
  }
  switch (options.group_method) {
    case GroupMethod::hierarchical:
      return hierarchical_plan(group, shape, worker, count, options);
    case GroupMethod::direct:
      return all_to_all_plan(group, worker, count);
    case GroupMethod::ring:
      return ring_plan(group, worker, count);
  }
  __builtin_unreachable();
}

Slice whole_scratch(const Plan& plan, int k) {
  return {k, 0, plan.scratch[static_cast<std::size_t>(k - 1)].count};
}

bool is_coded(const Plan& plan, const Slice& slice) {
  return slice.buffer > 0 && plan.scratch[static_cast<std::size_t>(slice.buffer - 1)].is_coded;
}

std::size_t bytes_of(const Plan& plan, const Slice& slice, DType dtype) {
  return coded_bytes(is_coded(plan, slice) ? plan.codec : Codec::fp32, slice.count, dtype);
}

bool adds_up(const Plan& plan) {
  return plan.phases.size() > 1 || (plan.phases.size() == 1 && !plan.phases[0].sums.empty());
}

std::vector<Piece> pieces_without(const Plan& plan, const std::vector<char>& is_missing) {
  GOSSAMER_ASSERT(!adds_up(plan));
  const auto is_own_code = [&](const Term& term) {
    return std::ranges::any_of(plan.phases[0].codings, [&](const Coding& coding) {
      return coding.into == term.slice.buffer;
    });
  };
  std::vector<Piece> pieces = plan.pieces;
  for (Piece& piece : pieces) {
    double coded = 0;
    std::erase_if(piece.terms, [&](const Term& term) {
      if (is_missing[static_cast<std::size_t>(term.slice.buffer)] == 0) return false;
      (is_coded(plan, term.slice) ? coded : piece.self_weight) += term.weight;
      return true;
    });
    if (coded == 0) continue;
    const auto own = std::ranges::find_if(piece.terms, is_own_code);
    GOSSAMER_ASSERT(own != piece.terms.end());
    own->weight += coded;
  }
  return pieces;
}

std::vector<Piece> pieces_left(const Plan& plan, bool is_spoiled,
                               const std::vector<char>& is_missing) {
  if (!is_spoiled && std::ranges::count(is_missing, 0) < std::ssize(is_missing)) {
    return pieces_without(plan, is_missing);
  }
  std::vector<Piece> pieces = plan.pieces;
  if (!is_spoiled) return pieces;
  for (Piece& piece : pieces) {
    piece.self_weight = 1;
    piece.terms.clear();
  }
  return pieces;
}

bool has_coded_terms(const Plan& plan) {
  return std::ranges::any_of(plan.pieces, [&](const Piece& piece) {
    return std::ranges::any_of(piece.terms,
                               [&](const Term& term) { return is_coded(plan, term.slice); });
  });
}

bool codes_payload_only(const Plan& plan) {
  const auto is_payload = [](const Slice& slice) { return slice.buffer == 0; };
  const auto reads = [&](const Phase& phase) {
    const bool is_first = &phase == plan.phases.data();
    const auto sends = [&](const Message& message) { return is_payload(message.slice); };
    const auto adds = [&](const Sum& sum) { return std::ranges::any_of(sum.terms, is_payload); };
    const auto codes = [&](const Coding& coding) {
      return (coding.kept.count > 0 && is_payload(coding.kept)) ||
             (!is_first && is_payload(coding.from));
    };
    return std::ranges::any_of(phase.sends, sends) || std::ranges::any_of(phase.sums, adds) ||
           std::ranges::any_of(phase.codings, codes);
  };
  const auto takes = [&](const Piece& piece) {
    return std::ranges::any_of(piece.terms, is_payload, &Term::slice);
  };
  return !plan.phases.empty() && std::ranges::none_of(plan.phases, reads) &&
         std::ranges::none_of(plan.pieces, takes);
}

Traffic traffic(const Plan& plan, const HostShape& shape, int worker) {
  Traffic total;
  const int host = shape.host_of(worker);
  for (const Phase& phase : plan.phases) {
    for (const Message& message : phase.sends) {
      const bool crosses = shape.host_of(message.peer) != host;
      (crosses ? total.between_hosts : total.inside_host) += message.slice.count;
      ++total.messages;
    }
  }
  return total;
}

}  // namespace gossamer
