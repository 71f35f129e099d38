#include "gossamer/exchange/interpreter.h"

#include <algorithm>
#include <map>
#include <stdexcept>
#include <string>
#include <tuple>

#include "gossamer/base/errors.h"

namespace gossamer {
namespace {

using Values = std::vector<double>;
using Mailbox = std::map<std::tuple<int, int, int>, Values>;  // (from, to, slot)

struct Worker {
  int rank = 0;
  const Plan* plan = nullptr;
  std::vector<Values> buffers;
  std::size_t phase = 0;
  bool sent = false;
};

std::span<double> view(Worker& worker, const Slice& slice) {
  Values& buffer = worker.buffers.at(static_cast<std::size_t>(slice.buffer));
  GOSSAMER_ASSERT(slice.offset >= 0 && slice.count >= 0);
  GOSSAMER_ASSERT(slice.offset + slice.count <= static_cast<std::int64_t>(buffer.size()));
  return {buffer.data() + slice.offset, static_cast<std::size_t>(slice.count)};
}

void code_all(Worker& worker, const Phase& phase, const Rounding& rounding) {
  for (const Coding& coding : phase.codings) {
    const std::span<double> from = view(worker, coding.from);
    const std::span<double> coded = view(worker, {coding.into, 0, coding.from.count});
    const std::span<double> kept = view(worker, coding.kept);
    GOSSAMER_ASSERT(coded.size() == worker.buffers[static_cast<std::size_t>(coding.into)].size());
    for (std::size_t k = 0; k < from.size(); ++k) {
      const double x = from[k];
      coded[k] = rounding(x);
      if (!kept.empty()) kept[k] = coding.own * x + coding.keep * (x - coded[k]);
    }
  }
}

void send_all(Worker& worker, const Phase& phase, Mailbox& mail) {
  for (const Message& message : phase.sends) {
    const std::span<double> data = view(worker, message.slice);
    const bool fresh = mail.emplace(std::tuple{worker.rank, message.peer, message.slot},
                                    Values(data.begin(), data.end()))
                           .second;
    if (!fresh) throw std::logic_error("two messages with one slot");
  }
}

bool all_arrived(const Worker& worker, const Phase& phase, const Mailbox& mail) {
  return std::ranges::all_of(phase.receives, [&](const Message& message) {
    return mail.contains({message.peer, worker.rank, message.slot});
  });
}

void receive_all(Worker& worker, const Phase& phase, Mailbox& mail) {
  for (const Message& message : phase.receives) {
    const auto found = mail.find({message.peer, worker.rank, message.slot});
    const std::span<double> landing = view(worker, message.slice);
    if (found->second.size() != landing.size()) throw std::logic_error("sizes differ");
    std::ranges::copy(found->second, landing.begin());
    mail.erase(found);
  }
  for (const Sum& sum : phase.sums) {
    Values total(static_cast<std::size_t>(sum.into.count), 0.0);
    for (const Slice& term : sum.terms) {
      const std::span<double> data = view(worker, term);
      GOSSAMER_ASSERT(data.size() == total.size());
      for (std::size_t k = 0; k < total.size(); ++k) total[k] += data[k];
    }
    const std::span<double> into = view(worker, sum.into);
    for (std::size_t k = 0; k < total.size(); ++k) into[k] = sum.scale * total[k];
  }
}

/// One attempt to move a worker on; false if it must wait for others or has finished.
bool advance(Worker& worker, Mailbox& mail, const Rounding& rounding) {
  if (worker.phase == worker.plan->phases.size()) return false;
  const Phase& phase = worker.plan->phases[worker.phase];
  if (!worker.sent) {
    code_all(worker, phase, rounding);
    send_all(worker, phase, mail);
    worker.sent = true;
    return true;
  }
  if (!all_arrived(worker, phase, mail)) return false;
  receive_all(worker, phase, mail);
  worker.sent = false;
  ++worker.phase;
  return true;
}

Values mix(Worker& worker) {
  Values result(static_cast<std::size_t>(worker.plan->count), 0.0);
  for (const Piece& piece : worker.plan->pieces) {
    const auto begin = static_cast<std::size_t>(piece.offset);
    for (std::size_t k = 0; k < static_cast<std::size_t>(piece.count); ++k) {
      double value = piece.self_weight * worker.buffers[0].at(begin + k);
      for (const Term& term : piece.terms) value += term.weight * view(worker, term.slice)[k];
      result.at(begin + k) += value;  // += so that overlapping pieces give a wrong result
    }
  }
  return result;
}

Worker make_worker(int rank, const Plan& plan, const Values& payload) {
  Worker worker{.rank = rank, .plan = &plan};
  GOSSAMER_ASSERT(static_cast<std::int64_t>(payload.size()) == plan.count);
  worker.buffers.push_back(payload);
  for (const Scratch& scratch : plan.scratch) {
    worker.buffers.emplace_back(static_cast<std::size_t>(scratch.count), 0.0);
  }
  return worker;
}

}  // namespace

std::vector<std::vector<double>> interpret(std::span<const Plan> plans,
                                           const std::vector<std::vector<double>>& payloads,
                                           const Rounding& rounding) {
  std::vector<Worker> workers;
  for (std::size_t i = 0; i < plans.size(); ++i) {
    workers.push_back(make_worker(static_cast<int>(i), plans[i], payloads.at(i)));
  }
  Mailbox mail;
  for (bool moved = true; moved;) {
    moved = false;
    for (Worker& worker : workers) moved = advance(worker, mail, rounding) || moved;
  }
  std::vector<std::vector<double>> mixed;
  for (Worker& worker : workers) {
    if (worker.phase != worker.plan->phases.size()) {
      throw std::logic_error("worker " + std::to_string(worker.rank) + " waits for ever in phase " +
                             std::to_string(worker.phase));
    }
    mixed.push_back(mix(worker));
  }
  if (!mail.empty()) throw std::logic_error("a message was never received");
  return mixed;
}

}  // namespace gossamer
