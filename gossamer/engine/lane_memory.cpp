// Where a lane's vectors are, and the copies of them that travel.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "gossamer/base/errors.h"
#include "gossamer/engine/lane.h"
#include "gossamer/engine/typed_span.h"
#include "gossamer/kernels/copy.h"

namespace gossamer {

std::byte* Lane::parameter_at(const Segment& segment, std::int64_t offset) const {
  const bool is_own = segment.x != nullptr;
  auto* begin = static_cast<std::byte*>(is_own ? segment.x : bucket_.x);
  const std::int64_t first = is_own ? segment.offset : 0;
  return begin + static_cast<std::size_t>(offset - first) * size_of(bucket_.dtype);
}

/// Null where the layer above keeps none for parameters that are not stepped.
std::byte* Lane::state_at(const Segment& segment, std::size_t k, std::int64_t offset) const {
  const std::size_t element = size_of(bucket_.dtype);
  if (!is_scattered()) {
    return optimizer_state_[k].data() + static_cast<std::size_t>(offset) * element;
  }
  auto* begin = static_cast<std::byte*>(segment.state[k]);
  if (begin == nullptr) return nullptr;
  return begin + static_cast<std::size_t>(offset - segment.offset) * element;
}

/// Null without a gradient.
const std::byte* Lane::gradient_at(const Segment& segment, std::int64_t offset) const {
  const bool is_own = segment.g != nullptr;
  if (!is_own && bucket_.g == nullptr) return nullptr;
  const auto* begin = static_cast<const std::byte*>(is_own ? segment.g : bucket_.g);
  const std::int64_t first = is_own ? segment.offset : 0;
  return begin + static_cast<std::size_t>(offset - first) * size_of(bucket_.dtype);
}

std::size_t Lane::outbox_bytes(bool is_shared) const {
  const std::size_t most = std::max(pattern_.payloads.size(), pattern_.then.size());
  return (is_shared ? slots_.size() : 1) * most * aligned(bytes());
}

void Lane::set_outbox(Owner owner, std::byte* begin) {
  outbox_owner_ = std::move(owner);
  outbox_begin_ = begin;
}

/// The one for payload `k` of the current exchange.
std::byte* Lane::outbox(std::size_t k) const {
  std::size_t place = k;
  if (outbox_owner_) {
    place = static_cast<std::size_t>(current_ - slots_.data()) + slots_.size() * k;
  }
  return outbox_begin_ + place * aligned(bytes());
}

PayloadRef Lane::find_payload(Payload payload) {
  switch (payload) {
    case Payload::parameters:
      break;
    case Payload::gradients:
      return {.data = bucket_.g};
    case Payload::own:
      return {.data = pattern_state_[0].data()};
    case Payload::momentum:
      return {.data = optimizer_state_[0].data()};
    case Payload::second:
      return {.data = optimizer_state_[1].data()};
  }
  return {.data = bucket_.x, .owner = bucket_.spare != nullptr ? bucket_.owner : nullptr};
}

/// Copies what the plan sends of payload `k` to where peers can read it.
PayloadRef Lane::hand_over(const Plan& plan, const PayloadRef& payload, std::size_t k) {
  if (outbox_begin_ == nullptr) return payload;
  std::byte* box = outbox(k);
  std::int64_t begin = bucket_.count;
  std::int64_t end = 0;
  for (const Phase& phase : plan.phases) {
    for (const Message& message : phase.sends) {
      if (message.slice.buffer != 0) continue;
      begin = std::min(begin, message.slice.offset);
      end = std::max(end, message.slice.offset + message.slice.count);
    }
  }
  if (begin >= end) return payload;
  const std::size_t skipped = static_cast<std::size_t>(begin) * size_of(bucket_.dtype);
  copy_streaming(box + skipped, static_cast<const std::byte*>(payload.data) + skipped,
                 static_cast<std::size_t>(end - begin) * size_of(bucket_.dtype));
  return {.data = payload.data, .lent = box, .owner = outbox_owner_};
}

/// Null where it has no such element.
const std::byte* Lane::payload_at(Payload payload, const Segment& segment,
                                  std::int64_t offset) const {
  if (payload == Payload::own) {
    return pattern_state_[0].data() + static_cast<std::size_t>(offset) * size_of(bucket_.dtype);
  }
  if (segment.group == kGap) return nullptr;
  switch (payload) {
    case Payload::own:
      break;
    case Payload::parameters:
      return parameter_at(segment, offset);
    case Payload::gradients:
      return gradient_at(segment, offset);
    case Payload::momentum:
      return state_at(segment, 0, offset);
    case Payload::second:
      return state_at(segment, 1, offset);
  }
  __builtin_unreachable();
}

/// Writes elements [begin, begin + count) of a payload with `copy`; zeros where there are none.
template <class Copy>
void Lane::read_payload(Payload payload, std::int64_t begin, std::int64_t count, std::byte* into,
                        const Copy& copy) const {
  auto segment = std::ranges::upper_bound(bucket_.segments, begin, {}, &Segment::offset) - 1;
  for (; count > 0; ++segment) {
    const std::int64_t here = std::min(count, segment->offset + segment->count - begin);
    const std::size_t size = static_cast<std::size_t>(here) * size_of(bucket_.dtype);
    const std::byte* from = payload_at(payload, *segment, begin);
    if (from == nullptr) {
      std::memset(into, 0, size);
    } else {
      copy(into, from, size);
    }
    begin += here;
    count -= here;
    into += size;
  }
}

/// Copies a payload of a scattered bucket into its outbox, whole: it is what the mix is relative
/// to. Copies nothing where nobody exchanges anything, or where it leaves coded and the mix keeps
/// all of x: then it is relative to what the code says.
PayloadRef Lane::gather(Payload payload, std::size_t k) {
  const Plan& plan = *current_->plan;
  if (plan.phases.empty()) return {};
  const bool travels_between_steps =
      pattern_.launch == Launch::after_previous_update && stage_of(number_) == 0;
  const bool is_ours = payload == Payload::own || payload == Payload::gradients;
  const bool is_relative = travels_between_steps && !is_ours;
  const auto keeps_all = [](const Piece& p) { return std::abs(p.self_weight - 1) < 1e-9; };
  const bool is_read_once = late_.empty() && codes_payload_only(plan);
  if (is_read_once && (!is_relative || std::ranges::all_of(plan.pieces, keeps_all))) {
    return {.read = [this, payload](std::int64_t begin, std::int64_t count, std::byte* into) {
      read_payload(payload, begin, count, into, std::memcpy);
    }};
  }
  GOSSAMER_ASSERT(outbox_begin_ != nullptr);
  std::byte* box = outbox(k);
  if (is_relative) {
    remember(payload, k, box);
  } else {
    read_payload(payload, 0, bucket_.count, box, copy_streaming);
  }
  return {.data = box, .owner = outbox_owner_};
}

/// Copies a payload into its outbox as what the mix will be relative to, see Note [What was sent].
void Lane::remember(Payload payload, std::size_t k, std::byte* box) {
  Sent& sent = sent_[k];
  sent.data = box;
  sent.digests.clear();
  if (!late_.empty()) return read_payload(payload, 0, bucket_.count, box, copy_streaming);
  const std::size_t element = size_of(bucket_.dtype);
  for (const Segment& segment : bucket_.segments) {
    if (segment.group != kGap) continue;
    std::memset(box + static_cast<std::size_t>(segment.offset) * element, 0,
                static_cast<std::size_t>(segment.count) * element);
  }
  for (const Work& work : cut(current_->plan->pieces, longest_work())) {
    const std::size_t first = sent.digests.size();
    sent.digests.resize(first + work.digests());
    const std::byte* from = payload_at(payload, *work.segment, work.offset);
    visit_dtype(bucket_.dtype, [&]<class T>(T) {
      const std::span<T> to = typed<T>(static_cast<void*>(box), work.offset, work.count);
      if (from == nullptr) {
        std::ranges::fill(to, T(0));
      } else {
        copy_digested<T>(typed<T>(static_cast<const void*>(from), 0, work.count), to,
                         std::span(sent.digests).subspan(first));
      }
    });
  }
}

void Lane::read_parameters(std::byte* into) const {
  const std::size_t element = size_of(bucket_.dtype);
  for (const Segment& segment : bucket_.segments) {
    if (segment.group == kGap) continue;
    std::memcpy(into + static_cast<std::size_t>(segment.offset) * element,
                parameter_at(segment, segment.offset),
                static_cast<std::size_t>(segment.count) * element);
  }
}

void Lane::write_parameters(const std::byte* from) const {
  const std::size_t element = size_of(bucket_.dtype);
  for (const Segment& segment : bucket_.segments) {
    if (segment.group == kGap) continue;
    std::memcpy(parameter_at(segment, segment.offset),
                from + static_cast<std::size_t>(segment.offset) * element,
                static_cast<std::size_t>(segment.count) * element);
  }
}

void Lane::set_anchors() {
  for (std::size_t k = 0; k < pattern_.anchors; ++k) read_parameters(pattern_state_[k].data());
}

}  // namespace gossamer
