#include "gossamer/engine/lane.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "gossamer/base/errors.h"
#include "gossamer/engine/tags.h"
#include "gossamer/engine/typed_span.h"
#include "gossamer/kernels/codec.h"
#include "gossamer/kernels/copy.h"

namespace gossamer {
namespace {

// Of coded terms, so that they are in the cache when the pass reads them.
constexpr std::int64_t kDecodedAtOnce = 32 * kCodecBlock;

}  // namespace

Vector::Vector(DType dtype, std::int64_t count)
    : memory_(make_aligned_bytes(static_cast<std::size_t>(count) * size_of(dtype))),
      size_(static_cast<std::size_t>(count) * size_of(dtype)) {
  std::memset(memory_.get(), 0, size_);
}

Lane::Lane(const Bucket& bucket, int index, const Pattern& pattern, const Optimizer& optimizer,
           Codec codec)
    : bucket_(bucket), index_(index), pattern_(pattern), optimizer_(optimizer) {
  if (!is_scattered()) {
    optimizer_state_ = take_vectors(bucket.optimizer_state, optimizer.state.size());
  }
  pattern_state_ = take_vectors(bucket.pattern_state, pattern.state.size());
  const std::size_t all_payloads = pattern.payloads.size() + pattern.then.size();
  const std::size_t carried = facts_of(codec).carries_error ? all_payloads : 0;
  for (std::size_t k = 0; k < carried; ++k) codec_state_.push_back(make_vector());
}

std::size_t Lane::bytes() const {
  return static_cast<std::size_t>(bucket_.count) * size_of(bucket_.dtype);
}

std::span<std::byte> Lane::whole(void* data) const {
  return {static_cast<std::byte*>(data), bytes()};
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

void Lane::set_segments(std::vector<Segment> segments) {
  std::int64_t covered = 0;
  for (const Segment& segment : segments) {
    GOSSAMER_ASSERT(segment.offset == covered && segment.count > 0);
    covered += segment.count;
  }
  GOSSAMER_ASSERT(covered == bucket_.count);
  const bool same_works =
      std::ranges::equal(bucket_.segments, segments, [](const Segment& a, const Segment& b) {
        return a.count == b.count && (a.group == kGap) == (b.group == kGap);
      });
  if (!same_works) {
    for (Sent& sent : sent_) sent.digests.clear();
  }
  bucket_.segments = std::move(segments);
}

std::vector<StateVector> Lane::state() const {
  GOSSAMER_ASSERT(!is_scattered());
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

void Lane::expect(ExchangeRunner& runner, std::shared_ptr<const Plan> plan, std::int64_t number) {
  Slot& slot = slot_of(number);
  GOSSAMER_ASSERT(&slot != current_ && slot.plan == nullptr);
  slot.plan = std::move(plan);
  if (!late_.empty()) return;
  const std::span<const Payload> payloads = payloads_of(number);
  for (std::size_t k = 0; k < payloads.size(); ++k) {
    slot.exchanges[k] =
        runner.expect({.plan = slot.plan.get(),
                       .dtype = bucket_.dtype,
                       .arena = &slot.arenas[k],
                       .step = number,
                       .stream = stream::of_payload(index_, k),
                       .error = carried_error(number, k),
                       .checks = checks_payloads_ && payloads[k] == Payload::parameters,
                       .recorder = recorder_,
                       .recorded_step = number / pattern_.stages()});
  }
}

void Lane::launch(ExchangeRunner& runner, std::int64_t number) {
  GOSSAMER_ASSERT(!launched() && expects(number));
  current_ = &slot_of(number);
  number_ = number;
  for (Sent& sent : sent_) sent.data = nullptr;
  const Plan& plan = *current_->plan;
  const std::span<const Payload> payloads = payloads_of(number);
  for (std::size_t k = 0; k < payloads.size(); ++k) {
    const PayloadRef payload =
        is_scattered() ? gather(payloads[k], k) : hand_over(plan, find_payload(payloads[k]), k);
    if (late_.empty()) {
      runner.start(current_->exchanges[k], payload);
    } else {
      late_[k]->send(plan, number, {payload.data, carried_error(number, k)});
    }
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
    spec.stream = stream::of_payload(index_, k);
    spec.checks = checks_payloads_ && pattern_.payloads[k] == Payload::parameters;
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

/// Of the current exchange; none: of a pass that needs nothing from others.
std::int64_t Lane::longest_work() const {
  const bool decodes = current_ != nullptr && has_coded_terms(*current_->plan);
  return decodes ? kDecodedAtOnce : bucket_.count;
}

/// The ranges have at most `longest` elements.
std::vector<Lane::Work> Lane::cut(std::span<const Piece> pieces, std::int64_t longest) const {
  std::vector<Work> works;
  for (const Piece& piece : pieces) {
    for (const Segment& segment : bucket_.segments) {
      if (segment.group == kGap) continue;
      const std::int64_t begin = std::max(piece.offset, segment.offset);
      const std::int64_t end = std::min(piece.offset + piece.count, segment.offset + segment.count);
      for (std::int64_t at = begin; at < end; at += longest) {
        works.push_back({at, std::min(longest, end - at), &segment, &piece});
      }
    }
  }
  return works;
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

/// What arrived for a payload, as a mix with the vector as it is now; see Note [What was sent].
template <class T>
Mix<T> Lane::mix_of(const Work& work, std::size_t payload, std::vector<Source<T>>& sources,
                    std::size_t first_digest) {
  find_sources<T>(work, payload, sources);
  const double own = work.piece->self_weight;
  const Sent& sent = sent_[payload];
  if (sent.data == nullptr || own == 1) return {own, sources};
  const Source<T> copy{reinterpret_cast<const T*>(sent.data) + work.offset, own - 1};
  sources.insert(sources.begin(), copy);
  Mix<T> mix{1, sources};
  if (!sent.digests.empty()) {
    mix.digests = std::span(sent.digests).subspan(first_digest, work.digests());
  }
  return mix;
}

template <class T>
double Lane::sweep(std::span<const Piece> pieces, typename Pattern::Pass<T> pass,
                   std::span<const StepNumbers> groups, WorkerPool* pool, bool measure) {
  double distance = 0;
  std::array<std::vector<Source<T>>, kMaxVectors> sources;
  static const Optimizer& no_step = find_optimizer("none");
  const auto span_of = [](void* data, std::int64_t count) { return typed<T>(data, 0, count); };
  std::size_t digest = 0;
  for (const Work& work : cut(pieces, longest_work())) {
    const Segment& segment = *work.segment;
    const bool steps = segment.group != kNoStep;
    const void* g = gradient_at(segment, work.offset);
    PassArgs<T> args{.x = span_of(parameter_at(segment, work.offset), work.count),
                     .out = {},
                     .g = typed<T>(g, 0, steps ? work.count : 0),
                     .pool = pool};
    // What has no gradient is mixed with the numbers of the run.
    if (!groups.empty()) args.numbers = groups[steps ? static_cast<std::size_t>(segment.group) : 0];
    if (bucket_.spare != nullptr) args.out = typed<T>(bucket_.spare, work.offset, work.count);
    for (std::size_t k = 0; k < optimizer_.state.size(); ++k) {
      args.optimizer_state[k] = span_of(state_at(segment, k, work.offset), work.count);
    }
    for (std::size_t k = 0; k < pattern_state_.size(); ++k) {
      args.pattern_state[k] =
          typed<T>(static_cast<void*>(pattern_state_[k].data()), work.offset, work.count);
    }
    for (std::size_t k = 0; current_ != nullptr && k < payloads_of(number_).size(); ++k) {
      args.mixes[k] = mix_of<T>(work, k, sources[k], digest);
      args.mixes[k].measure_distance = measure;
    }
    digest += work.digests();
    distance += pass(args, steps ? optimizer_ : no_step);
  }
  return distance;
}

double Lane::prepare(std::span<const StepNumbers> groups, WorkerPool* pool, bool measure) {
  const Piece whole{.offset = 0, .count = bucket_.count};
  return visit_dtype(bucket_.dtype, [&]<class T>(T) {
    const auto pass = pattern_.passes<T>().prepare;
    return pass == nullptr ? 0.0 : sweep<T>({&whole, 1}, pass, groups, pool, measure);
  });
}

double Lane::combine(std::span<const StepNumbers> groups, WorkerPool* pool, bool measure) {
  GOSSAMER_ASSERT(launched());
  const double distance = visit_dtype(bucket_.dtype, [&]<class T>(T) {
    const Plan& plan = *current_->plan;
    const auto pass = has_next_stage() ? pattern_.passes<T>().middle : pattern_.passes<T>().combine;
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
  } else if (outbox_begin_ == nullptr) {
    lent_ = {};
  }
  current_->plan = nullptr;
  current_ = nullptr;
  return distance;
}

}  // namespace gossamer
