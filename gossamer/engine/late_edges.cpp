#include "gossamer/engine/late_edges.h"

#include <algorithm>
#include <cstring>

#include "gossamer/base/errors.h"
#include "gossamer/engine/options.h"
#include "gossamer/engine/payload_check.h"
#include "gossamer/kernels/codec.h"

namespace gossamer {
namespace {

constexpr std::int32_t kSlot = 1;  // the exchanges that are waited for use 0

}  // namespace

LateEdges::LateEdges(Transport& transport, const LateSpec& spec, std::span<const Plan* const> plans)
    : transport_(transport), spec_(spec) {
  for (const Plan* plan : plans) {
    for (const Phase& phase : plan->phases) {
      for (const Message& message : phase.receives) {
        const auto [edge, is_new] = in_.try_emplace(message.peer);
        if (!is_new) continue;
        edge->second.bytes = bytes_of(*plan, message.slice, spec_.dtype);
        if (is_coded(*plan, message.slice)) edge->second.codec = plan->codec;
        for (AlignedBytes& memory : edge->second.memory) {
          memory = make_aligned_bytes(edge->second.bytes);
        }
      }
    }
  }
  for (auto& [peer, edge] : in_) ask(peer, edge);
}

LateEdges::~LateEdges() {
  for (auto& [peer, edge] : in_) transport_.release(edge.request);
  for (auto& [peer, edge] : out_) transport_.release(edge.request);
}

Tag LateEdges::tag(std::int64_t number) const {
  return {spec_.first_number + number, spec_.stream, kSlot};
}

void LateEdges::ask(int peer, In& edge) {
  std::byte* const landing = edge.memory[static_cast<std::size_t>(edge.landing)].get();
  edge.request =
      transport_.receive(peer, tag(edge.number++), {landing, edge.bytes}, Deadline::max());
}

/// What is wrong with a payload; null: nothing is.
std::exception_ptr LateEdges::complaint(std::span<const std::byte> payload, const In& edge,
                                        int peer) const {
  try {
    require_finite(payload, edge.codec, spec_.dtype, peer);
    return nullptr;
  } catch (const NonFinitePayload&) {
    return std::current_exception();
  }
}

void LateEdges::collect(int peer, In& edge) {
  while (!edge.error) {
    const Status status = transport_.poll(edge.request);
    if (status.state == Status::State::pending) return;
    edge.error = status.error;
    if (edge.error) return;
    if (spec_.recorder != nullptr) {  // which step's it is only the sender knows
      spec_.recorder->arrived({peer, tag(edge.number - 1), spec_.recorder->step(), 0,
                               static_cast<std::int64_t>(edge.bytes), status.arrived});
    }
    std::byte* const landing = edge.memory[static_cast<std::size_t>(edge.landing)].get();
    land(status, landing);
    if (spec_.checks) edge.error = complaint({landing, edge.bytes}, edge, peer);
    if (edge.error) return;
    transport_.release(edge.request);
    edge.newest = edge.landing;
    edge.landing = 0;
    while (edge.landing == edge.newest || edge.landing == edge.current) ++edge.landing;
    ask(peer, edge);
  }
}

void LateEdges::collect() {
  const std::lock_guard lock(mutex_);
  for (auto& [peer, edge] : in_) collect(peer, edge);
}

/// Whether what was sent last is not needed any more.
bool LateEdges::has_left(Out& edge) {
  if (edge.request == 0) return true;
  const Status status = transport_.poll(edge.request);
  if (status.state == Status::State::pending) return false;
  transport_.release(edge.request);
  edge.request = 0;
  if (status.error) std::rethrow_exception(status.error);
  return true;
}

void LateEdges::send(const Plan& plan, std::int64_t step, const LatePayload& payload) {
  if (plan.phases.empty()) return;
  const Phase& phase = plan.phases[0];
  GOSSAMER_ASSERT(plan.phases.size() == 1 && phase.codings.size() <= 1);
  if (!phase.codings.empty()) {
    const std::size_t bytes = coded_bytes(plan.codec, spec_.count, spec_.dtype);
    if (!coded_) coded_ = make_aligned_bytes(bytes);
    visit_dtype(spec_.dtype, [&]<class T>(T) {
      encode<T>(plan.codec,
                {.x = {static_cast<const T*>(payload.data), static_cast<std::size_t>(spec_.count)},
                 .coded = {coded_.get(), bytes},
                 .error = static_cast<T*>(payload.error)});
    });
  }
  for (const Message& message : phase.sends) {
    Out& edge = out_[message.peer];
    if (!has_left(edge)) continue;
    const bool coded = is_coded(plan, message.slice);
    if (!edge.memory) {
      edge.bytes = bytes_of(plan, message.slice, spec_.dtype);
      edge.memory = make_aligned_bytes(edge.bytes);
    }
    std::memcpy(edge.memory.get(), coded ? coded_.get() : payload.data, edge.bytes);
    const Tag number = tag(edge.number++);
    if (spec_.recorder != nullptr) {
      spec_.recorder->sent(
          {message.peer, number, step, 0, static_cast<std::int64_t>(edge.bytes), Clock::now()});
    }
    edge.request =
        transport_.send(message.peer, number, {edge.memory.get(), edge.bytes}, Deadline::max());
  }
}

std::vector<Piece> LateEdges::usable(const Plan& plan, std::int64_t step) {
  collect();
  std::vector<Piece> pieces = plan.pieces;
  if (plan.phases.empty()) return pieces;
  GOSSAMER_ASSERT(pieces.size() == 1);
  bases_.assign(plan.scratch.size() + 1, nullptr);
  const std::lock_guard lock(mutex_);
  for (const Message& message : plan.phases[0].receives) {
    In& edge = in_.at(message.peer);
    if (edge.newest >= 0) {
      edge.current = std::exchange(edge.newest, -1);
      edge.since = step;
    } else if (edge.error) {
      std::rethrow_exception(edge.error);
    }
    if (edge.current < 0 || step - edge.since > spec_.staleness) continue;
    bases_[static_cast<std::size_t>(message.slice.buffer)] =
        edge.memory[static_cast<std::size_t>(edge.current)].get();
  }
  for (const Coding& coding : plan.phases[0].codings) {
    bases_[static_cast<std::size_t>(coding.into)] = coded_.get();
  }
  Piece& piece = pieces[0];
  std::erase_if(piece.terms, [&](const Term& term) {
    if (at(term.slice) != nullptr) return false;
    piece.self_weight += term.weight;
    ++skipped_;
    return true;
  });
  return pieces;
}

}  // namespace gossamer
