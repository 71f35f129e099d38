// Where a lane's vectors are, and the copies of them that travel.
#include <algorithm>
#include <cstring>

#include "gossamer/base/errors.h"
#include "gossamer/engine/lane.h"
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

std::size_t Lane::outbox_bytes() const {
  const std::size_t most = std::max(pattern_.payloads.size(), pattern_.then.size());
  return slots_.size() * most * aligned(bytes());
}

void Lane::set_outbox(Owner owner, std::byte* begin) {
  outbox_owner_ = std::move(owner);
  outbox_begin_ = begin;
}

/// The one for payload `k` of the current exchange.
std::byte* Lane::outbox(std::size_t k) const {
  const std::size_t place = static_cast<std::size_t>(current_ - slots_.data()) + slots_.size() * k;
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

/// Copies a payload of a scattered bucket into its outbox, whole: it is what the mix is relative
/// to. Copies nothing where nobody exchanges anything.
PayloadRef Lane::gather(Payload payload, std::size_t k) {
  if (current_->plan->phases.empty()) return {};
  GOSSAMER_ASSERT(outbox_begin_ != nullptr);
  std::byte* box = outbox(k);
  const auto collect = [&](const auto& address_of) {
    for (const Segment& segment : bucket_.segments) {
      if (segment.group == kGap) continue;
      const std::size_t element = size_of(bucket_.dtype);
      std::byte* into = box + static_cast<std::size_t>(segment.offset) * element;
      const std::size_t size = static_cast<std::size_t>(segment.count) * element;
      const std::byte* from = address_of(segment);
      if (from == nullptr) {
        std::memset(into, 0, size);
      } else {
        copy_streaming(into, from, size);
      }
    }
  };
  switch (payload) {
    case Payload::parameters:
      collect([this](const Segment& s) { return parameter_at(s, s.offset); });
      break;
    case Payload::gradients:
      collect([this](const Segment& s) { return gradient_at(s, s.offset); });
      break;
    case Payload::own:
      copy_streaming(box, pattern_state_[0].data(), bytes());
      break;
    case Payload::momentum:
      collect([this](const Segment& s) { return state_at(s, 0, s.offset); });
      break;
    case Payload::second:
      collect([this](const Segment& s) { return state_at(s, 1, s.offset); });
      break;
  }
  const bool travels_between_steps =
      pattern_.launch == Launch::after_previous_update && stage_of(number_) == 0;
  const bool is_ours = payload == Payload::own || payload == Payload::gradients;
  sent_[k] = travels_between_steps && !is_ours ? box : nullptr;
  return {.data = box, .owner = outbox_owner_};
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
