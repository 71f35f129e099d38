#include "gossamer/engine/lane.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

#include "gossamer/base/errors.h"
#include "gossamer/kernels/codec.h"
#include "gossamer/kernels/copy.h"
#include "gossamer/kernels/norm.h"

namespace gossamer {
namespace {

// Of coded terms, so that they are in the cache when the pass reads them.
constexpr std::int64_t kDecodedAtOnce = 32 * kCodecBlock;

template <class T>
std::span<T> typed(void* data, std::int64_t offset, std::int64_t count) {
  return {static_cast<T*>(data) + offset, static_cast<std::size_t>(count)};
}

template <class T>
std::span<const T> typed(const void* data, std::int64_t offset, std::int64_t count) {
  return {static_cast<const T*>(data) + offset, static_cast<std::size_t>(count)};
}

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
  const std::size_t carried = codec == Codec::int8 ? pattern.payloads.size() : 0;
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
  return 2 * pattern_.payloads.size() * aligned(whole(bucket_.x).size());
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

void Lane::expect(ExchangeRunner& runner, std::shared_ptr<const Plan> plan, std::int64_t step) {
  Slot& slot = slot_of(step);
  GOSSAMER_ASSERT(&slot != current_ && slot.plan == nullptr);
  slot.plan = std::move(plan);
  if (!late_.empty()) return;
  for (std::size_t k = 0; k < pattern_.payloads.size(); ++k) {
    slot.exchanges[k] =
        runner.expect({.plan = slot.plan.get(),
                       .dtype = bucket_.dtype,
                       .arena = &slot.arenas[k],
                       .step = step,
                       .stream = index_ * static_cast<int>(kMaxVectors) + static_cast<int>(k),
                       .error = carried_error(k),
                       .recorder = recorder_});
  }
}

void Lane::launch(ExchangeRunner& runner, std::int64_t step) {
  GOSSAMER_ASSERT(!launched() && expects(step));
  current_ = &slot_of(step);
  step_ = step;
  for (std::size_t k = 0; k < pattern_.payloads.size(); ++k) {
    PayloadRef payload{.data = bucket_.x};
    switch (pattern_.payloads[k]) {
      case Payload::parameters:
        if (bucket_.spare != nullptr) payload.owner = bucket_.owner;
        break;
      case Payload::gradients:
        payload.data = bucket_.g;
        break;
      case Payload::copy:
        copy_streaming(pattern_state_[0].data(), bucket_.x, pattern_state_[0].size());
        payload.data = pattern_state_[0].data();
        break;
      case Payload::own:
        payload.data = pattern_state_[0].data();
        break;
      case Payload::momentum:
        payload.data = optimizer_state_[0].data();
        break;
    }
    if (!late_.empty()) {
      late_[k]->send(*current_->plan, step, {payload.data, carried_error(k)});
      continue;
    }
    runner.start(current_->exchanges[k], hand_over(*current_->plan, payload, k));
  }
}

void* Lane::carried_error(std::size_t payload) const {
  return codec_state_.empty() ? nullptr : codec_state_[payload].data();
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
    if (steps) args.numbers = groups[static_cast<std::size_t>(work.group)];
    if (bucket_.spare != nullptr) args.out = typed<T>(bucket_.spare, work.offset, work.count);
    fill_state(args.optimizer_state, optimizer_state_, work.offset, work.count);
    fill_state(args.pattern_state, pattern_state_, work.offset, work.count);
    for (std::size_t k = 0; current_ != nullptr && k < pattern_.payloads.size(); ++k) {
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
    if (late_.empty()) return sweep<T>(plan.pieces, pattern_.combine<T>(), groups, pool, measure);
    const std::vector<Piece> usable = late_[0]->usable(plan, step_);
    return sweep<T>(usable, pattern_.combine<T>(), groups, pool, measure);
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

double Lane::local_norm_squared(WorkerPool* pool) const {
  return visit_dtype(bucket_.dtype, [&]<class T>(T) {
    double sum = 0;
    for (const Segment& segment : bucket_.segments) {
      if (segment.group == kNoStep) continue;
      sum += sum_squares(typed<T>(gradient_of(segment), 0, segment.count), pool);
    }
    return sum;
  });
}

double Lane::mean_norm_squared(WorkerPool* pool) const {
  return visit_dtype(bucket_.dtype, [&]<class T>(T) {
    double sum = 0;
    for (const Piece& piece : current_->plan->pieces) {
      const Slice own{0, piece.offset, piece.count};
      const void* data =
          current_->exchanges[0]->at(piece.terms.empty() ? own : piece.terms[0].slice);
      sum += sum_squares(typed<T>(data, 0, piece.count), pool);
    }
    return sum;
  });
}

std::int64_t Lane::first_non_finite() const {
  return visit_dtype(bucket_.dtype, [&]<class T>(T) {
    for (const Segment& segment : bucket_.segments) {
      if (segment.group == kNoStep) continue;
      const auto values = typed<T>(gradient_of(segment), 0, segment.count);
      const auto found =
          std::ranges::find_if(values, [](T value) { return !std::isfinite(value); });
      if (found != values.end()) return segment.offset + (found - values.begin());
    }
    return std::int64_t{-1};
  });
}

double Lane::gradient_at(std::int64_t element) const {
  const auto segment = std::ranges::find_if(bucket_.segments, [&](const Segment& s) {
    return element >= s.offset && element < s.offset + s.count;
  });
  return visit_dtype(bucket_.dtype, [&]<class T>(T) {
    const auto* g = static_cast<const T*>(gradient_of(*segment));
    return static_cast<double>(g[element - segment->offset]);
  });
}

}  // namespace gossamer
