#include "gossamer/engine/outbox.h"

#include <algorithm>
#include <cmath>

#include "gossamer/base/errors.h"
#include "gossamer/engine/elements.h"
#include "gossamer/kernels/codec.h"

namespace gossamer {
namespace {

// Of coded terms, so that they are in the cache when the pass reads them.
constexpr std::int64_t kDecodedAtOnce = 32 * kCodecBlock;

/// The elements of the payload that a plan sends as they are.
PayloadPart sent_range(const Plan& plan) {
  std::int64_t begin = plan.count;
  std::int64_t end = 0;
  for (const Phase& phase : plan.phases) {
    for (const Message& message : phase.sends) {
      if (message.slice.buffer != 0) continue;
      begin = std::min(begin, message.slice.offset);
      end = std::max(end, message.slice.offset + message.slice.count);
    }
  }
  return {begin, std::max(std::int64_t{0}, end - begin)};
}

bool keeps_all(const Plan& plan) {
  return std::ranges::all_of(plan.pieces,
                             [](const Piece& p) { return std::abs(p.self_weight - 1) < 1e-9; });
}

}  // namespace

std::size_t digests_of(const Work& work) {
  return digest_count(static_cast<std::size_t>(work.count));
}

std::int64_t longest_work(const Plan& plan) {
  return has_coded_terms(plan) ? kDecodedAtOnce : plan.count;
}

Outbox::Outbox(const BucketState& state, const EngineOptions& options, Lends lends)
    : state_(state), late_(options.late) {
  const bool copies =
      late_ == Late::wait && copier_of(state.bucket.x.owner, lends) == Copier::sender;
  if (copies) turns_ = 2;
  if (!copies && !is_scattered(state.bucket)) return;
  const Pattern& pattern = find_pattern(options.pattern);
  most_ = std::max(pattern.payloads.size(), pattern.then.size());
}

std::byte* Outbox::box(const Leaving& leaving) const {
  GOSSAMER_ASSERT(memory_.data != nullptr);
  const auto turn = static_cast<std::size_t>(leaving.number) % turns_;
  return static_cast<std::byte*>(memory_.data) + (turn + turns_ * leaving.k) * room();
}

PayloadRef Outbox::put(const Leaving& leaving) {
  sent_[leaving.k].data = nullptr;
  return is_scattered(state_.bucket) ? gather(leaving) : hand_over(leaving);
}

void Outbox::forget_digests() {
  for (Sent& sent : sent_) sent.digests.clear();
}

PayloadRef Outbox::hand_over(const Leaving& leaving) const {
  const Memory payload = payload_of(state_, leaving.payload);
  const PayloadPart range = sent_range(*leaving.plan);
  if (memory_.data == nullptr || range.count == 0) {
    return {.data = payload.data, .owner = payload.owner};
  }
  const DType dtype = state_.dtype();
  std::byte* const into = box(leaving);
  elements::copy_streaming(dtype, elements::address(dtype, into, range.begin),
                           elements::address(dtype, payload.data, range.begin), range.count);
  return {.data = payload.data, .lent = into, .owner = memory_.owner};
}

PayloadRef Outbox::gather(const Leaving& leaving) {
  const Plan& plan = *leaving.plan;
  const Payload payload = leaving.payload;
  if (plan.phases.empty()) return {};
  if (state_.bucket.device != nullptr) return copy_out(leaving);
  const bool is_read_once = late_ == Late::wait && codes_payload_only(plan);
  if (is_read_once && (!leaving.is_relative || keeps_all(plan))) {
    return {.read = [this, payload](std::int64_t begin, std::int64_t count, std::byte* into) {
      read_payload(state_, payload, {begin, count}, into, elements::copy);
    }};
  }
  std::byte* const into = box(leaving);
  if (leaving.is_relative) {
    remember(leaving);
  } else {
    read_payload(state_, payload, {0, plan.count}, into, elements::copy_streaming);
  }
  return {.data = into, .owner = memory_.owner};
}

/// From a device; what the mix will be relative to, too.
PayloadRef Outbox::copy_out(const Leaving& leaving) {
  std::byte* const into = box(leaving);
  DeviceBucket* const device = state_.bucket.device;
  sent_[leaving.k] = {.data = into, .digests = {}};
  device->copy_out(into);
  return {.data = into, .owner = memory_.owner, .is_ready = [device] { return device->is_out(); }};
}

/// Copies a payload as what the mix will be relative to, see Note [What was sent].
void Outbox::remember(const Leaving& leaving) {
  const DType dtype = state_.dtype();
  std::byte* const into = box(leaving);
  Sent& sent = sent_[leaving.k];
  sent.data = into;
  sent.digests.clear();
  if (late_ == Late::skip) {
    const PayloadPart all{0, state_.bucket.count};
    return read_payload(state_, leaving.payload, all, into, elements::copy_streaming);
  }
  for (const Segment& segment : state_.bucket.segments) {
    if (segment.group != kGap) continue;
    elements::clear(dtype, elements::address(dtype, into, segment.offset), segment.count);
  }
  const Plan& plan = *leaving.plan;
  for (const Work& work : cut(state_.bucket.segments, plan.pieces, longest_work(plan))) {
    const std::size_t first = sent.digests.size();
    sent.digests.resize(first + digests_of(work));
    const std::byte* const from = payload_at(state_, leaving.payload, *work.segment, work.offset);
    std::byte* const to = elements::address(dtype, into, work.offset);
    if (from == nullptr) {
      elements::clear(dtype, to, work.count);
    } else {
      elements::copy_digested(dtype, to, from, work.count, std::span(sent.digests).subspan(first));
    }
  }
}

OutboxMemory give_memory(std::span<Outbox* const> outboxes, Lends lends) {
  std::size_t bytes = 0;
  bool are_lent = false;
  for (const Outbox* outbox : outboxes) {
    bytes += outbox->bytes();
    are_lent = are_lent || outbox->is_lent();
  }
  OutboxMemory memory;
  if (bytes == 0) return memory;
  const auto shared = are_lent ? shared_memory_for(lends, bytes) : nullptr;
  if (!shared) memory.own = make_aligned_bytes(bytes);
  std::byte* begin = shared ? shared->data() : memory.own.get();
  memory.all = {begin, bytes};
  for (Outbox* outbox : outboxes) {
    outbox->use({begin, outbox->is_lent() ? Owner(shared) : Owner()});
    begin += outbox->bytes();
  }
  return memory;
}

}  // namespace gossamer
