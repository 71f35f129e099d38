#include "gossamer/engine/engine.h"

#include <algorithm>
#include <cmath>
#include <ranges>
#include <utility>

#include "gossamer/base/errors.h"
#include "gossamer/base/index.h"
#include "gossamer/engine/exchange_traffic.h"
#include "gossamer/engine/late_edges.h"
#include "gossamer/engine/non_finite.h"
#include "gossamer/engine/peers.h"
#include "gossamer/engine/spares.h"
#include "gossamer/engine/tags.h"

namespace gossamer {

Engine::Engine(EngineOptions options, Transport& transport, std::vector<Bucket> buckets)
    : options_(std::move(options)),
      pattern_(find_pattern(options_.pattern)),
      optimizer_(find_optimizer(options_.optimizer)),
      alternates_(can_alternate(options_, buckets)),
      runner_(transport, options_.timeout_s, [this] { while_waiting(); }),
      collectives_(runner_, seating_of_all(options_, transport.describe())),
      plans_(options_, collectives_.seating()),
      step_(buckets.size()) {
  if (options_.lost == Lost::go_on) {
    going_on_ = std::make_unique<GoingOn>(transport, collectives_, options_, takes_census());
  }
  const int threads = options_.kernel_threads;
  if (threads > 1) pool_ = std::make_unique<WorkerPool>(threads);
  const Lends lends = transport.describe().lends;
  for (Bucket& bucket : buckets) {
    if (!alternates_) {
      bucket.spare = nullptr;
      bucket.x.owner = nullptr;  // an update writes where peers would read
    }
    BucketState state =
        make_bucket_state(std::move(bucket), static_cast<int>(lanes_.size()), options_);
    lanes_.push_back(std::make_unique<Lane>(std::move(state), options_, lends));
  }
  if (!plans_.has_edges()) return;
  std::vector<Outbox*> outboxes;
  for (const auto& lane : lanes_) outboxes.push_back(&lane->outbox());
  outbox_memory_ = give_memory(outboxes, lends);
}

void Engine::while_waiting() {
  if (options_.while_waiting) options_.while_waiting();
  if (going_on_ && started_) going_on_->while_waiting(steps_);
}

/// See Note [Rounds formed anew]. With Late::skip edges stay as they are.
bool Engine::takes_census() const {
  return options_.late == Late::wait && !gossamer::settles(pattern_) && plans_.has_edges();
}

/// How payloads travel from the first exchange on. With Late::skip that is collective.
void Engine::make_traffic() {
  if (options_.late == Late::wait) {
    for (const auto& lane : lanes_) {
      lane->use(make_exchange_traffic(lane->state(), options_, runner_, lost()));
    }
    return;
  }
  double steps = static_cast<double>(steps_);
  collectives_.mean({&steps, 1});
  // Beyond all numbers that any worker has used: one per step at most.
  const std::int64_t first_number = std::llround(steps * collectives_.workers());
  std::vector<LateEdges*> all;
  for (const auto& lane : lanes_) {
    auto edges = std::make_unique<LateEdges>(
        runner_.transport(), late_spec(lane->state(), options_, first_number, lost()),
        plans_.plans_for(lane->state().bucket.count));
    all.push_back(edges.get());
    lane->use(std::move(edges));
  }
  runner_.attend([all = std::move(all)] {
    for (LateEdges* edges : all) edges->collect();
  });
}

std::vector<StateVector> Engine::state() const {
  std::vector<StateVector> all;
  for (const auto& lane : lanes_) {
    for (StateVector& vector : vectors_of(lane->state(), pattern_, optimizer_)) {
      all.push_back(std::move(vector));
    }
  }
  return all;
}

/// Whether the next round is known, and what it sends is ready, before the step has ended.
bool Engine::sends_ahead() const {
  return pattern_.launch == Launch::after_previous_update && !plans_.schedule().loss_driven;
}

/// Note [Second stages first]: a bucket's next payloads leave as soon as it is updated, unless
/// there may be second stages under way: those are waited for, and would queue behind what has a
/// whole forward's time.
bool Engine::sends_at_once() const { return sends_ahead() && pattern_.stages() == 1; }

std::int64_t Engine::round_of(Lane& lane) const {
  const BucketState& state = lane.state();
  return plans_.round_of(state.index, state.bucket.every, steps_);
}

void Engine::expect(Lane& lane, std::int64_t exchange) {
  const BucketState& state = lane.state();
  const std::int64_t step = exchange / pattern_.stages();
  lane.expect(plans_.plan_in_step(state.index, state.bucket.every, step, state.bucket.count),
              exchange);
}

void Engine::launch(Lane& lane, std::int64_t exchange) {
  if (!lane.expects(exchange)) expect(lane, exchange);
  lane.launch(exchange);
  if (sends_ahead()) expect(lane, exchange + 1);
}

void Engine::start() {
  for (const auto& lane : lanes_) {
    const Bucket& bucket = lane->state().bucket;
    std::vector<std::byte> values(bytes_of(bucket));
    read_parameters(bucket, values.data());
    collectives_.broadcast(values);
    write_parameters(bucket, values.data());
    if (bucket.device != nullptr) bucket.device->load();
  }
  set_anchors();
  start_at(0);
}

void Engine::set_anchors() {
  for (const auto& lane : lanes_) gossamer::set_anchors(lane->state(), pattern_);
}

void Engine::start_at(std::int64_t step) {
  GOSSAMER_ASSERT(!started_);
  started_ = true;
  steps_ = step;
  collectives_.at_step(steps_);
  if (options_.recorder != nullptr) options_.recorder->begin_step(step);
  make_traffic();
  if (pattern_.launch == Launch::after_previous_update) launch_all();
}

void Engine::start_back(Arrival& arrival) {
  GOSSAMER_ASSERT(going_on_);
  const std::int64_t steps = arrival.agree_on_start();
  going_on_->begin_with(arrival, steps);
  collectives_.come_back();
  if (settles() || going_on_->counts()) {  // by itself until the others have it among them
    plans_.reseat(options_, alone(plans_.seating()), steps);
  }
  if (settles()) {
    for (const auto& lane : lanes_) begin_anew(lane->state(), pattern_);
  }
  start_at(steps);
  for (const auto& lane : lanes_) lane->traffic().wait(Until::copied);  // others may quiesce()
}

/// The step's first payloads; those of the buckets first that the backward completes first.
void Engine::launch_all() {
  for (const auto& lane : lanes_) launch(*lane, steps_ * pattern_.stages());
}

PassNumbers Engine::numbers(Lane& lane) const {
  const std::int64_t round = round_of(lane);
  const double weight = plans_.weight_in(round);
  PassNumbers all{.groups = {}, .pool = pool_.get(), .measure_distance = options_.measure_distance};
  for (const Hyper& hyper : options_.groups) {
    const std::int64_t t = hyper.t > 0 ? hyper.t : steps_ + 1;
    all.groups.push_back({hyper, t, step_.grad_scale * hyper.grad_scale, round, weight});
  }
  return all;
}

void Engine::set_groups(std::vector<Hyper> groups) {
  for (const Hyper& hyper : groups) check_hyper(hyper);
  options_.groups = std::move(groups);
}

void Engine::set_segments(int bucket, std::vector<Segment> segments) {
  lanes_.at(at(bucket))->set_segments(std::move(segments));
}

void Engine::quiesce() {
  if (!started_) return;
  for (const auto& lane : lanes_) lane->traffic().wait(Until::copied);
  for (const auto& lane : lanes_) lane->traffic().wait(Until::returned);
}

double Engine::load_average() {
  quiesce();  // x must not change while it travels
  std::vector<WeightedBucket> buckets;
  for (const auto& lane : lanes_) {
    buckets.push_back({&lane->state().bucket, plans_.weight_in(round_of(*lane))});
  }
  return average_.load(buckets, collectives_);
}

/// Of the local gradient. Refuses one that is not finite.
double Engine::checked_norm_squared(Lane& lane) const {
  const Bucket& bucket = lane.state().bucket;
  const double squared = gradient_norm_squared(bucket, pool_.get());
  if (std::isfinite(squared)) return squared;
  const std::int64_t element = first_non_finite_gradient(bucket);
  if (element < 0) return squared;  // the sum overflowed: clipping by it gives zero
  const int index = lane.state().index;
  const std::string name =
      options_.name_of ? options_.name_of(index, element)
                       : "bucket " + std::to_string(index) + ", element " + std::to_string(element);
  refuse_non_finite(name, collectives_.rank(), steps_ + 1, gradient_value(bucket, element));
}

/// Sets the clipping factor by the norm that was measured.
void Engine::limit_gradient() {
  const double norm = std::sqrt(step_.norm_squared);
  if (options_.clip_norm > 0 && norm > options_.clip_norm) {
    step_.grad_scale = options_.clip_norm / norm;
  }
}

void Engine::begin_bucket(Lane& lane) {
  const int index = lane.state().index;
  step_.begun[at(index)] = 1;
  if (pattern_.launch == Launch::after_previous_update) return;
  lane.prepare(numbers(lane));
  launch(lane, steps_ * pattern_.stages());
  record(Kind::update, index);
}

void Engine::wait(Lane& lane) {
  const auto begin = Clock::now();
  lane.traffic().wait(Until::arrived);
  step_.overlap.waits.push_back({begin, Clock::now()});
  record(Kind::wait, lane.state().index);
}

/// Of one stage; the bucket's step is not finished where it sends another.
void Engine::finish_stage(Lane& lane) {
  wait(lane);
  const int index = lane.state().index;
  const bool goes_on = lane.has_next_stage();
  const Combined combined = lane.combine(numbers(lane));
  if (options_.recorder != nullptr) options_.recorder->exchanged(index, combined.journeys);
  auto& journeys = step_.overlap.journeys;
  journeys.insert(journeys.end(), combined.journeys.begin(), combined.journeys.end());
  step_.distance_squared += combined.distance;
  step_.skipped += combined.skipped;
  step_.finished[at(index)] = !goes_on;
  if (step_.begins_anew && !goes_on) begin_anew(lane.state(), pattern_);
  if (goes_on) launch(lane, steps_ * pattern_.stages() + 1);
  if (sends_at_once()) launch(lane, steps_ + 1);
  record(Kind::update, index);
}

/// Index of one that need not wait, the first of those; waits for one.
std::size_t Engine::first_ready(const std::vector<Lane*>& open) {
  const auto begin = Clock::now();
  const Deadline deadline = deadline_after(options_.timeout_s);
  for (;;) {
    for (std::size_t k = 0; k < open.size(); ++k) {
      if (!open[k]->traffic().is_ready(deadline)) continue;
      step_.overlap.waits.push_back({begin, Clock::now()});
      record(Kind::wait);
      return k;
    }
    runner_.transport().progress(Clock::now() + kLongestNap);
    runner_.while_waiting();
  }
}

/// Note [First come, first served]: buckets do not wait for each other. One whose exchange has
/// ended is updated and sent on its way again while others still wait, so that no link idles
/// because of the order of the buckets. Of those that are ready the latest comes first: the
/// gradients that the backward wrote last are still in the cache.
void Engine::finish_buckets() {
  const auto is_finished = [this](Lane& lane) { return step_.finished[at(lane.state().index)]; };
  std::vector<Lane*> open;
  for (const auto& lane : std::views::reverse(lanes_)) {
    if (!is_finished(*lane)) open.push_back(lane.get());
  }
  while (!open.empty()) {
    const std::size_t next = first_ready(open);
    finish_stage(*open[next]);
    if (is_finished(*open[next])) open.erase(open.begin() + static_cast<std::ptrdiff_t>(next));
  }
}

void Engine::gradient_ready(int bucket) {
  GOSSAMER_ASSERT(started_);
  if (options_.update == UpdateAt::step) return;
  Lane& lane = *lanes_.at(at(bucket));
  GOSSAMER_ASSERT(!step_.begun[at(bucket)]);
  if (options_.check_gradients) step_.norm_squared += checked_norm_squared(lane);
  begin_bucket(lane);
  record(Kind::update, bucket);
  if (pattern_.launch == Launch::after_previous_update && !settles()) finish_stage(lane);
}

/// Looks at all local gradients before anything is touched or sent.
void Engine::check_gradients() {
  double norm_squared = 0;
  for (const auto& lane : lanes_) {
    if (!step_.begun[at(lane->state().index)]) norm_squared += checked_norm_squared(*lane);
  }
  step_.norm_squared += norm_squared;
  record(Kind::update);
}

/// See Note [Settled means] and Note [Sums that begin anew].
bool Engine::settles() const { return going_on_ != nullptr && gossamer::settles(pattern_); }

std::int64_t Engine::first_round(std::int64_t step) const {
  std::int64_t longest = 1;
  for (const auto& lane : lanes_) longest = std::max(longest, lane->state().bucket.every);
  return step / longest;
}

/// Of all buckets, before any of them steps.
void Engine::settle() {
  for (const auto& lane : lanes_) wait(*lane);
  const auto again = [this] {
    for (const auto& lane : lanes_) lane->settle_again(collectives_);
  };
  const auto left = collectives_.settle(steps_ * kPassesOfAStep, plans_.seating(), again);
  step_.begins_anew = pattern_.conserves && !have_same_ranks(left, plans_.seating());
  if (plans_.reseat(options_, left, first_round(steps_ + 1))) step_.among = ranks_of(left);
}

/// See Note [Rounds formed anew].
void Engine::form_rounds_anew() {
  if (!going_on_) return;
  const auto begin = Clock::now();
  const std::optional<Seating> counted = going_on_->count(steps_);
  if (!counted) return;
  step_.overlap.waits.push_back({begin, Clock::now()});
  if (plans_.reseat(options_, *counted, first_round(steps_))) step_.among = ranks_of(*counted);
}

/// The norm of the averaged gradient, once it has arrived.
void Engine::measure_means() {
  step_.norm_squared = 0;
  for (const auto& lane : lanes_) {
    wait(*lane);
    step_.norm_squared += mean_norm_squared(lane->arrived(), pool_.get());
    record(Kind::update, lane->state().index);
  }
}

StepReport Engine::step(double loss) {
  GOSSAMER_ASSERT(started_ && !average_.is_loaded());
  step_.grad_scale = 1;
  const bool clips = options_.clip_norm > 0;
  const bool steps_with_mean = pattern_.launch == Launch::before_update;
  if (options_.check_gradients || (clips && !steps_with_mean)) check_gradients();
  if (!steps_with_mean) limit_gradient();
  for (const auto& lane : std::views::reverse(lanes_)) {
    if (!step_.begun[at(lane->state().index)]) begin_bucket(*lane);
  }
  if (settles()) settle();
  if (steps_with_mean && clips) {
    measure_means();
    limit_gradient();
  }
  finish_buckets();
  if (plans_.schedule().loss_driven) {
    plans_.agree_on_loss(collectives_, steps_, loss);
    record(Kind::wait);
  }
  ++steps_;
  if (pattern_.launch == Launch::after_previous_update && !sends_at_once()) launch_all();
  form_rounds_anew();
  return end_step();
}

StepReport Engine::end_step() {
  StepReport report{.step = steps_,
                    .grad_norm = std::sqrt(step_.norm_squared),
                    .exposed_s = step_.overlap.exposed_s(),
                    .hidden_s = step_.overlap.hidden_s(),
                    .skipped = step_.skipped,
                    .among = step_.among,
                    .distance = std::sqrt(step_.distance_squared)};
  step_ = Step(lanes_.size());
  if (going_on_) {
    report.lost = going_on_->lost().take_new();
    report.back = going_on_->lost().take_new_back();
    going_on_->look(steps_);
  }
  collectives_.at_step(steps_);
  if (options_.recorder != nullptr) options_.recorder->begin_step(steps_);
  return report;
}

}  // namespace gossamer
