#include "gossamer/engine/lane.h"

#include <algorithm>
#include <utility>

#include "gossamer/base/errors.h"
#include "gossamer/base/index.h"
#include "gossamer/engine/elements.h"
#include "gossamer/engine/tags.h"
#include "gossamer/engine/typed_span.h"

namespace gossamer {
namespace {

/// Whether two lists of segments are cut into the same works.
bool same_works(std::span<const Segment> a, std::span<const Segment> b) {
  return std::ranges::equal(a, b, [](const Segment& one, const Segment& other) {
    return one.count == other.count && (one.group == kGap) == (other.group == kGap);
  });
}

bool mixes(const Plan& plan) {
  return std::ranges::any_of(plan.pieces, [](const Piece& piece) { return !piece.terms.empty(); });
}

}  // namespace

Lane::Lane(BucketState state, const EngineOptions& options, Lends lends)
    : state_(std::move(state)),
      pattern_(find_pattern(options.pattern)),
      optimizer_(find_optimizer(options.optimizer)),
      outbox_(state_, options, lends) {}

void Lane::set_segments(std::vector<Segment> segments) {
  check_segments(state_.bucket, segments);
  if (!same_works(state_.bucket.segments, segments)) outbox_.forget_digests();
  state_.bucket.segments = std::move(segments);
}

void Lane::expect(std::shared_ptr<const Plan> plan, std::int64_t number) {
  GOSSAMER_ASSERT(!expects(number));
  traffic_->expect(*plan, number);
  plans_[at(number % 2)] = std::move(plan);
}

void Lane::launch(std::int64_t number) {
  GOSSAMER_ASSERT(expects(number));
  number_ = number;
  const Plan& plan = *plan_of(number);
  const bool is_between_steps =
      pattern_.launch == Launch::after_previous_update && stage_of(number) == 0;
  std::vector<PayloadRef> payloads;
  for (const Payload payload : pattern_.payloads_of(stage_of(number))) {
    const bool is_ours = payload == Payload::own || payload == Payload::gradients;
    payloads.push_back(outbox_.put({.payload = payload,
                                    .k = payloads.size(),
                                    .number = number,
                                    .is_relative = is_between_steps && !is_ours,
                                    .plan = &plan}));
  }
  traffic_->launch(plan, number, payloads);
}

/// Where the terms of a range are. Coded ones are decoded, and are still in the cache when the pass
/// reads them.
template <class T>
void Lane::add_sources(const Work& work, const Arrived& arrived, std::size_t payload,
                       Sources<T>& sources) {
  const Plan& plan = *plan_of(number_);
  const std::int64_t offset = work.offset - work.piece->offset;
  for (const Term& term : work.piece->terms) {
    const std::byte* const data = arrived.at(payload, term.slice);
    if (!is_coded(plan, term.slice)) {
      sources.of[payload].push_back({reinterpret_cast<const T*>(data) + offset, term.weight});
      continue;
    }
    if (sources.decoded == decoded_.size()) {
      decoded_.emplace_back(state_.dtype(), longest_work(plan));
    }
    void* const room = decoded_[sources.decoded++].bytes().data();
    elements::decode(state_.dtype(), room, work.count,
                     {.codec = plan.codec,
                      .coded = {data, coded_bytes(plan.codec, term.slice.count)},
                      .offset = offset});
    sources.of[payload].push_back({static_cast<const T*>(room), term.weight});
  }
}

/// What arrived for a payload, as a mix with the vector as it is now; see Note [What was sent].
template <class T>
Mix<T> Lane::mix_of(const Work& work, const Arrived& arrived, std::size_t payload,
                    Sources<T>& sources) {
  std::vector<Source<T>>& terms = sources.of[payload];
  terms.clear();
  const double own = work.piece->self_weight;
  const Sent& sent = outbox_.sent(payload);
  const bool is_relative = sent.data != nullptr && own != 1;
  if (is_relative) {
    terms.push_back({reinterpret_cast<const T*>(sent.data) + work.offset, own - 1});
  }
  add_sources<T>(work, arrived, payload, sources);
  Mix<T> mix{is_relative ? 1 : own, terms};
  if (is_relative && !sent.digests.empty()) {
    mix.digests = std::span(sent.digests).subspan(sources.first_digest, digests_of(work));
  }
  return mix;
}

/// All but the mixes.
template <class T>
PassArgs<T> Lane::args_of(const Work& work, const PassNumbers& numbers) {
  const Segment& segment = *work.segment;
  const bool steps = segment.group != kNoStep;
  const auto span_at = [&](void* begin, std::int64_t offset) {
    return typed<T>(begin, offset, work.count);
  };
  const void* const g = gradient_at(state_.bucket, segment, work.offset);
  PassArgs<T> args{.x = span_at(parameter_at(state_.bucket, segment, work.offset), 0),
                   .out = {},
                   .g = typed<T>(g, 0, steps ? work.count : 0),
                   .pool = numbers.pool};
  // What has no gradient is mixed with the numbers of the run.
  const std::size_t group = steps ? static_cast<std::size_t>(segment.group) : 0;
  if (!numbers.groups.empty()) args.numbers = numbers.groups[group];
  if (state_.bucket.spare.data != nullptr) {
    args.out = span_at(state_.bucket.spare.data, work.offset);
  }
  for (std::size_t k = 0; k < optimizer_.state.size(); ++k) {
    args.optimizer_state[k] = span_at(optimizer_state_at(state_, segment, k, work.offset), 0);
  }
  for (std::size_t k = 0; k < state_.pattern.size(); ++k) {
    args.pattern_state[k] = span_at(state_.pattern[k].data(), work.offset);
  }
  return args;
}

/// Without `arrived`: a pass that needs nothing from others.
template <class T>
double Lane::sweep(typename Pattern::Pass<T> pass, const PassNumbers& numbers,
                   const Arrived* arrived) {
  static const Optimizer& no_step = find_optimizer("none");
  const Bucket& bucket = state_.bucket;
  const Piece whole{.offset = 0, .count = bucket.count};
  const auto pieces = arrived != nullptr ? arrived->pieces : std::span(&whole, 1);
  const std::int64_t longest = arrived != nullptr ? longest_work(*plan_of(number_)) : bucket.count;
  const std::size_t payloads =
      arrived != nullptr ? pattern_.payloads_of(stage_of(number_)).size() : 0;
  double distance = 0;
  Sources<T> sources;
  for (const Work& work : cut(bucket.segments, pieces, longest)) {
    PassArgs<T> args = args_of<T>(work, numbers);
    sources.decoded = 0;
    for (std::size_t k = 0; k < payloads; ++k) {
      args.mixes[k] = mix_of<T>(work, *arrived, k, sources);
      args.mixes[k].measure_distance = numbers.measure_distance;
    }
    sources.first_digest += digests_of(work);
    distance += pass(args, work.segment->group != kNoStep ? optimizer_ : no_step);
  }
  return distance;
}

/// Somebody else steps, and the pattern keeps nothing.
bool Lane::changes_by_mixes_only() const {
  return &optimizer_ == &find_optimizer("none") && state_.pattern.empty() &&
         state_.bucket.spare.data == nullptr;
}

void Lane::prepare(const PassNumbers& numbers) {
  if (changes_by_mixes_only()) return;
  visit_dtype(state_.dtype(), [&]<class T>(T) {
    const auto pass = pattern_.passes<T>().prepare;
    if (pass != nullptr) sweep<T>(pass, numbers, nullptr);
  });
}

Arrived Lane::arrived() const {
  Arrived all = traffic_->arrived();
  if (!again_) return all;
  all.pieces = std::span(&again_->piece, 1);
  all.buffers[0] = std::span(&again_->begin, 1);
  all.skipped = 0;
  return all;
}

void Lane::settle_again(Collectives& collectives) {
  if (!averages_gradients(pattern_)) return;
  const std::int64_t count = state_.bucket.count;
  const DType dtype = state_.dtype();
  const Vector own(dtype, count);
  Vector mean(dtype, count);
  read_payload(state_, Payload::gradients, {0, count}, own.bytes().data(), elements::copy);
  collectives.mean_among_those_left(dtype, own.bytes().data(), mean.bytes().data(), count,
                                    stream::of_payload(state_.index, 0));
  const std::byte* const begin = mean.bytes().data();
  const Slice all{.buffer = 0, .offset = 0, .count = count};
  again_ = {.values = std::move(mean),
            .piece = {.offset = 0, .count = count, .self_weight = 0, .terms = {{all, 1}}},
            .begin = begin};
}

Combined Lane::combine(const PassNumbers& numbers) {
  GOSSAMER_ASSERT(expects(number_));
  Arrived arrived = this->arrived();
  const bool is_mixed = mixes(*plan_of(number_));
  DeviceBucket* const device = is_mixed ? state_.bucket.device : nullptr;
  if (device != nullptr) {
    device->begin_correction();
    clear_parameters(state_.bucket);
  }
  Combined combined{.distance = 0, .skipped = arrived.skipped, .journeys = {}};
  if (is_mixed || !changes_by_mixes_only()) {
    combined.distance = visit_dtype(state_.dtype(), [&]<class T>(T) {
      const Passes<T>& passes = pattern_.passes<T>();
      return sweep<T>(has_next_stage() ? passes.middle : passes.combine, numbers, &arrived);
    });
  }
  if (device != nullptr) device->add_correction();
  combined.journeys = std::move(arrived.journeys);
  traffic_->finish();
  again_.reset();
  plans_[at(number_ % 2)] = nullptr;
  if (state_.bucket.spare.data != nullptr) std::swap(state_.bucket.x, state_.bucket.spare);
  return combined;
}

}  // namespace gossamer
