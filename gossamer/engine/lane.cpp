#include "gossamer/engine/lane.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "gossamer/base/errors.h"
#include "gossamer/engine/typed_span.h"
#include "gossamer/kernels/codec.h"
#include "gossamer/kernels/copy.h"

namespace gossamer {
namespace {

// Of coded terms, so that they are in the cache when the pass reads them.
constexpr std::int64_t kDecodedAtOnce = 32 * kCodecBlock;

template <class T>
void fill_state(std::array<std::span<T>, kMaxVectors>& spans,
                std::span<const std::span<std::byte>> vectors, std::int64_t offset,
                std::int64_t count) {
  for (std::size_t k = 0; k < vectors.size(); ++k) {
    spans[k] = typed<T>(static_cast<void*>(vectors[k].data()), offset, count);
  }
}

}  // namespace

Vector::Vector(DType dtype, std::int64_t count)
    : memory_(make_aligned_bytes(static_cast<std::size_t>(count) * size_of(dtype))),
      size_(static_cast<std::size_t>(count) * size_of(dtype)) {
  std::memset(memory_.get(), 0, size_);
}

Lane::Lane(const Bucket& bucket, int index, const Pattern& pattern, const Optimizer& optimizer,
           Codec codec)
    : bucket_(bucket), index_(index), pattern_(pattern), optimizer_(optimizer) {
  optimizer_state_ = take_vectors(bucket.optimizer_state, optimizer.state.size());
  pattern_state_ = take_vectors(bucket.pattern_state, pattern.state.size());
  // bf16 is off by less than a step of training; int8 is not, so its error is carried on.
  const std::size_t all_payloads = pattern.payloads.size() + pattern.then.size();
  const std::size_t carried = codec == Codec::int8 ? all_payloads : 0;
  for (std::size_t k = 0; k < carried; ++k) codec_state_.push_back(make_vector());
}

std::span<std::byte> Lane::whole(void* data) const {
  return {static_cast<std::byte*>(data),
          static_cast<std::size_t>(bucket_.count) * size_of(bucket_.dtype)};
}

std::span<std::byte> Lane::make_vector() {
  return own_memory_.emplace_back(bucket_.dtype, bucket_.count).bytes();
}

/// Those that the bucket brings along; else own ones.
std::vector<std::span<std::byte>> Lane::take_vectors(std::span<void* const> brought,
                                                     std::size_t count) {
  GOSSAMER_ASSERT(brought.empty() || brought.size() == count);
  std::vector<std::span<std::byte>> vectors;
  for (std::size_t k = 0; k < count; ++k) {
    vectors.push_back(brought.empty() ? make_vector() : whole(brought[k]));
  }
  return vectors;
}

std::size_t Lane::outbox_bytes() const {
  const std::size_t most = std::max(pattern_.payloads.size(), pattern_.then.size());
  return slots_.size() * most * aligned(whole(bucket_.x).size());
}

void Lane::set_outbox(std::shared_ptr<const SharedMemory> memory, std::byte* begin) {
  outbox_ = std::move(memory);
  outbox_begin_ = begin;
}

/// Copies what the plan sends of payload `k` to where peers can read it.
PayloadRef Lane::hand_over(const Plan& plan, const PayloadRef& payload, std::size_t k) {
  if (outbox_ == nullptr) return payload;
  const std::size_t place = static_cast<std::size_t>(current_ - slots_.data()) + slots_.size() * k;
  std::byte* box = outbox_begin_ + place * aligned(whole(bucket_.x).size());
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
  return {.data = payload.data, .lent = box, .owner = outbox_};
}

void Lane::set_segments(std::vector<Segment> segments) {
  std::int64_t covered = 0;
  for (const Segment& segment : segments) {
    GOSSAMER_ASSERT(segment.offset == covered && segment.count > 0);
    covered += segment.count;
  }
  GOSSAMER_ASSERT(covered == bucket_.count);
  bucket_.segments = std::move(segments);
}

std::vector<StateVector> Lane::state() const {
  const std::string suffix = "." + std::to_string(index_);
  std::vector<StateVector> all;
  all.push_back({"parameters" + suffix, bucket_.dtype, whole(bucket_.x)});
  const auto add = [&](std::string_view owner, std::span<const std::string_view> names,
                       std::span<const std::span<std::byte>> vectors) {
    for (std::size_t k = 0; k < names.size(); ++k) {
      all.push_back(
          {std::string(owner) + "." + std::string(names[k]) + suffix, bucket_.dtype, vectors[k]});
    }
  };
  add(optimizer_.name, optimizer_.state, optimizer_state_);
  add(pattern_.name, pattern_.state, pattern_state_);
  return all;
}

void Lane::set_anchors() {
  for (std::size_t k = 0; k < pattern_.anchors; ++k) {
    copy_streaming(pattern_state_[k].data(), bucket_.x, pattern_state_[k].size());
  }
}

void Lane::expect(ExchangeRunner& runner, std::shared_ptr<const Plan> plan, std::int64_t number) {
  Slot& slot = slot_of(number);
  GOSSAMER_ASSERT(&slot != current_ && slot.plan == nullptr);
  slot.plan = std::move(plan);
  if (!late_.empty()) return;
  for (std::size_t k = 0; k < payloads_of(number).size(); ++k) {
    slot.exchanges[k] =
        runner.expect({.plan = slot.plan.get(),
                       .dtype = bucket_.dtype,
                       .arena = &slot.arenas[k],
                       .step = number,
                       .stream = index_ * static_cast<int>(kMaxVectors) + static_cast<int>(k),
                       .error = carried_error(number, k),
                       .recorder = recorder_,
                       .recorded_step = number / pattern_.stages()});
  }
}

PayloadRef Lane::find_payload(Payload payload) {
  switch (payload) {
    case Payload::parameters:
      break;
    case Payload::gradients:
      return {.data = bucket_.g};
    case Payload::copy:
      copy_streaming(pattern_state_[0].data(), bucket_.x, pattern_state_[0].size());
      return {.data = pattern_state_[0].data()};
    case Payload::own:
      return {.data = pattern_state_[0].data()};
    case Payload::momentum:
      return {.data = optimizer_state_[0].data()};
    case Payload::second:
      return {.data = optimizer_state_[1].data()};
  }
  return {.data = bucket_.x, .owner = bucket_.spare != nullptr ? bucket_.owner : nullptr};
}

void Lane::launch(ExchangeRunner& runner, std::int64_t number) {
  GOSSAMER_ASSERT(!launched() && expects(number));
  current_ = &slot_of(number);
  number_ = number;
  const std::span<const Payload> payloads = payloads_of(number);
  for (std::size_t k = 0; k < payloads.size(); ++k) {
    const PayloadRef payload = find_payload(payloads[k]);
    if (!late_.empty()) {
      late_[k]->send(*current_->plan, number, {payload.data, carried_error(number, k)});
      continue;
    }
    runner.start(current_->exchanges[k], hand_over(*current_->plan, payload, k));
  }
}

void* Lane::carried_error(std::int64_t number, std::size_t payload) const {
  if (codec_state_.empty()) return nullptr;
  const std::size_t earlier = stage_of(number) == 0 ? 0 : pattern_.payloads.size();
  return codec_state_[earlier + payload].data();
}

void Lane::skip_late(Transport& transport, LateSpec spec, std::span<const Plan* const> plans) {
  spec.dtype = bucket_.dtype;
  spec.count = bucket_.count;
  spec.recorder = recorder_;
  for (std::size_t k = 0; k < pattern_.payloads.size(); ++k) {
    spec.stream = index_ * static_cast<int>(kMaxVectors) + static_cast<int>(k);
    late_.push_back(std::make_unique<LateEdges>(transport, spec, plans));
  }
}

void Lane::collect_late() {
  for (const auto& edges : late_) edges->collect();
}

std::int64_t Lane::skipped() const {
  std::int64_t sum = 0;
  for (const auto& edges : late_) sum += edges->skipped();
  return sum;
}

void Lane::wait() {
  if (current_ == nullptr) return;
  for (const auto& exchange : current_->exchanges) {
    if (exchange) exchange->wait();
  }
  for (auto& exchange : lent_) {
    if (exchange) exchange->wait_all_back();
    exchange = nullptr;
  }
}

bool Lane::is_ready(Deadline deadline) {
  if (current_ == nullptr) return true;
  for (const auto& exchange : current_->exchanges) {
    if (exchange && !exchange->advance()) return false;
  }
  return std::ranges::all_of(
      lent_, [&](const auto& exchange) { return !exchange || exchange->is_all_back(deadline); });
}

void Lane::add_journeys(std::vector<Interval>& journeys) const {
  for (const auto& exchange : current_->exchanges) {
    if (exchange) journeys.push_back(exchange->journey());
  }
}

void Lane::take_over() const {
  if (current_ == nullptr) return;
  for (const auto& exchange : current_->exchanges) {
    if (exchange) exchange->take_over();
  }
}

void Lane::wait_all_back() const {
  if (current_ == nullptr) return;
  for (const auto& exchange : current_->exchanges) {
    if (exchange) exchange->wait_all_back();
  }
}

/// The ranges have at most `longest` elements.
std::vector<Lane::Work> Lane::cut(std::span<const Piece> pieces, std::int64_t longest) const {
  std::vector<Work> works;
  for (const Piece& piece : pieces) {
    for (const Segment& segment : bucket_.segments) {
      const std::int64_t begin = std::max(piece.offset, segment.offset);
      const std::int64_t end = std::min(piece.offset + piece.count, segment.offset + segment.count);
      if (begin >= end) continue;
      const auto* g = static_cast<const std::byte*>(gradient_of(segment));
      for (std::int64_t at = begin; at < end; at += longest) {
        const auto skipped = static_cast<std::size_t>(at - segment.offset) * size_of(bucket_.dtype);
        const std::int64_t count = std::min(longest, end - at);
        works.push_back({at, count, segment.group, g == nullptr ? g : g + skipped, &piece});
      }
    }
  }
  return works;
}

const void* Lane::gradient_of(const Segment& segment) const {
  if (segment.g != nullptr || bucket_.g == nullptr) return segment.g;
  return static_cast<const std::byte*>(bucket_.g) +
         static_cast<std::size_t>(segment.offset) * size_of(bucket_.dtype);
}

/// Where the terms of a range are. Coded ones are decoded, and are still in the cache when the pass
/// reads them.
template <class T>
void Lane::find_sources(const Work& work, std::size_t payload, std::vector<Source<T>>& sources) {
  sources.clear();
  std::size_t used = 0;
  const Plan& plan = *current_->plan;
  const std::int64_t offset = work.offset - work.piece->offset;
  for (const Term& term : work.piece->terms) {
    const std::byte* data = late_.empty() ? current_->exchanges[payload]->at(term.slice)
                                          : late_[payload]->at(term.slice);
    if (!is_coded(plan, term.slice)) {
      sources.push_back({reinterpret_cast<const T*>(data) + offset, term.weight});
      continue;
    }
    if (used == decoded_.size()) decoded_.emplace_back(bucket_.dtype, kDecodedAtOnce);
    const std::span<T> room = typed<T>(decoded_[used++].bytes().data(), 0, work.count);
    decode<T>(plan.codec, {data, coded_bytes(plan.codec, term.slice.count)}, offset, room);
    sources.push_back({room.data(), term.weight});
  }
}

template <class T>
double Lane::sweep(std::span<const Piece> pieces, typename Pattern::Pass<T> pass,
                   std::span<const StepNumbers> groups, WorkerPool* pool, bool measure) {
  double distance = 0;
  std::array<std::vector<Source<T>>, kMaxVectors> sources;
  static const Optimizer& no_step = find_optimizer("none");
  const bool decodes = current_ != nullptr && has_coded_terms(*current_->plan);
  const std::int64_t longest = decodes ? kDecodedAtOnce : bucket_.count;
  for (const Work& work : cut(pieces, longest)) {
    const bool steps = work.group != kNoStep;
    PassArgs<T> args{.x = typed<T>(bucket_.x, work.offset, work.count),
                     .out = {},
                     .g = typed<T>(work.g, 0, steps ? work.count : 0),
                     .pool = pool};
    // What has no gradient is mixed with the numbers of the run.
    if (!groups.empty()) args.numbers = groups[steps ? static_cast<std::size_t>(work.group) : 0];
    if (bucket_.spare != nullptr) args.out = typed<T>(bucket_.spare, work.offset, work.count);
    fill_state(args.optimizer_state, optimizer_state_, work.offset, work.count);
    fill_state(args.pattern_state, pattern_state_, work.offset, work.count);
    for (std::size_t k = 0; current_ != nullptr && k < payloads_of(number_).size(); ++k) {
      find_sources<T>(work, k, sources[k]);
      args.mixes[k] = {work.piece->self_weight, sources[k], measure};
    }
    distance += pass(args, steps ? optimizer_ : no_step);
  }
  return distance;
}

double Lane::prepare(std::span<const StepNumbers> groups, WorkerPool* pool, bool measure) {
  const Piece whole{.offset = 0, .count = bucket_.count};
  return visit_dtype(bucket_.dtype, [&]<class T>(T) {
    const auto pass = pattern_.prepare<T>();
    return pass == nullptr ? 0.0 : sweep<T>({&whole, 1}, pass, groups, pool, measure);
  });
}

double Lane::combine(std::span<const StepNumbers> groups, WorkerPool* pool, bool measure) {
  GOSSAMER_ASSERT(launched());
  const double distance = visit_dtype(bucket_.dtype, [&]<class T>(T) {
    const Plan& plan = *current_->plan;
    const auto pass = has_next_stage() ? pattern_.middle<T>() : pattern_.combine<T>();
    if (late_.empty()) return sweep<T>(plan.pieces, pass, groups, pool, measure);
    const std::vector<Piece> usable = late_[0]->usable(plan, number_);
    return sweep<T>(usable, pass, groups, pool, measure);
  });
  for (const auto& exchange : current_->exchanges) {
    if (exchange) exchange->finish();
  }
  lent_ = std::exchange(current_->exchanges, {});
  if (bucket_.spare != nullptr) {
    std::swap(bucket_.x, bucket_.spare);
  } else if (outbox_ == nullptr) {
    lent_ = {};
  }
  current_->plan = nullptr;
  current_ = nullptr;
  return distance;
}

}  // namespace gossamer
