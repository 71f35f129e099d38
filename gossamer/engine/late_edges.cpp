#include "gossamer/engine/late_edges.h"

#include <utility>

#include "gossamer/base/errors.h"
#include "gossamer/base/index.h"
#include "gossamer/engine/elements.h"
#include "gossamer/engine/non_finite.h"
#include "gossamer/engine/tags.h"

namespace gossamer {
namespace {

constexpr std::int32_t kSlot = 1;  // the exchanges that are waited for use 0

}  // namespace

LateSpec late_spec(const BucketState& state, const EngineOptions& options,
                   std::int64_t first_number, LostPeers* lost) {
  const Pattern& pattern = find_pattern(options.pattern);
  GOSSAMER_ASSERT(may_skip_late(pattern));
  return {.dtype = state.dtype(),
          .count = state.bucket.count,
          .stream = stream::of_payload(state.index, 0),
          .first_number = first_number,
          .staleness = options.staleness,
          .error = carried_error(state, pattern, 0, 0),
          .recorder = options.recorder,
          .checks = options.check_payloads && pattern.payloads[0] == Payload::parameters,
          .lost = lost};
}

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
  std::byte* const landing = edge.memory[at(edge.landing)].get();
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
    std::byte* const landing = edge.memory[at(edge.landing)].get();
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
  if (!status.error) return true;
  if (spec_.lost == nullptr) std::rethrow_exception(status.error);
  spec_.lost->pass_over(status.error, step_);
  return true;
}

void LateEdges::code(const Plan& plan, const PayloadRef& payload) {
  if (!coded_) coded_ = make_aligned_bytes(coded_bytes(plan.codec, spec_.count, spec_.dtype));
  elements::encode(spec_.dtype, {.codec = plan.codec,
                                 .x = payload.data,
                                 .count = spec_.count,
                                 .coded = coded_.get(),
                                 .error = spec_.error});
}

void LateEdges::launch(const Plan& plan, std::int64_t step, std::span<const PayloadRef> payloads) {
  plan_ = &plan;
  step_ = step;
  if (plan.phases.empty()) return;
  const Phase& phase = plan.phases[0];
  GOSSAMER_ASSERT(plan.phases.size() == 1 && phase.codings.size() <= 1);
  if (!phase.codings.empty()) code(plan, payloads[0]);
  for (const Message& message : phase.sends) {
    Out& edge = out_[message.peer];
    if (!has_left(edge)) continue;
    const bool coded = is_coded(plan, message.slice);
    if (!edge.memory) {
      edge.bytes = bytes_of(plan, message.slice, spec_.dtype);
      edge.memory = make_aligned_bytes(edge.bytes);
    }
    elements::copy_bytes(edge.memory.get(), coded ? coded_.get() : payloads[0].data, edge.bytes);
    const Tag number = tag(edge.number++);
    if (spec_.recorder != nullptr) {
      spec_.recorder->sent(
          {message.peer, number, step, 0, static_cast<std::int64_t>(edge.bytes), Clock::now()});
    }
    edge.request =
        transport_.send(message.peer, number, {edge.memory.get(), edge.bytes}, Deadline::max());
  }
}

/// The edge has failed, and everything that had come before is taken.
void LateEdges::end(In& edge, const std::exception_ptr& error) {
  if (spec_.lost == nullptr) std::rethrow_exception(error);
  if (!edge.is_off) spec_.lost->pass_over(error, step_);
  edge.is_off = true;
  edge.current = -1;
}

/// Where the buffers of the launched plan are.
void LateEdges::find_newest() {
  buffers_.assign(plan_->scratch.size() + 1, nullptr);
  const std::lock_guard lock(mutex_);
  for (const Message& message : plan_->phases[0].receives) {
    In& edge = in_.at(message.peer);
    if (edge.newest >= 0) {
      edge.current = std::exchange(edge.newest, -1);
      edge.since = step_;
    } else if (edge.error) {
      end(edge, edge.error);
    }
    if (edge.current < 0 || step_ - edge.since > spec_.staleness) continue;
    buffers_[at(message.slice.buffer)] = edge.memory[at(edge.current)].get();
  }
  for (const Coding& coding : plan_->phases[0].codings) buffers_[at(coding.into)] = coded_.get();
}

Arrived LateEdges::arrived() {
  collect();
  pieces_ = plan_->pieces;
  Arrived all{.pieces = pieces_, .buffers = {}, .journeys = {}, .skipped = 0, .dtype = spec_.dtype};
  if (plan_->phases.empty()) return all;
  GOSSAMER_ASSERT(pieces_.size() == 1);
  find_newest();
  all.buffers[0] = buffers_;
  Piece& piece = pieces_[0];
  all.skipped = static_cast<std::int64_t>(std::erase_if(piece.terms, [&](const Term& term) {
    const bool is_late = buffers_[at(term.slice.buffer)] == nullptr;
    if (is_late) piece.self_weight += term.weight;
    return is_late;
  }));
  return all;
}

}  // namespace gossamer
