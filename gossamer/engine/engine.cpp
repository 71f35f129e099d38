#include "gossamer/engine/engine.h"

#include <algorithm>
#include <cmath>
#include <ranges>

#include "gossamer/base/errors.h"
#include "gossamer/graph/push_sum.h"

namespace gossamer {
namespace {

using Kind = TimelineEvent::Kind;

}  // namespace

bool wants_spares(const EngineOptions& options, const Transport& transport) {
  const Pattern& pattern = find_pattern(options.pattern);
  return sends_parameters_ahead(pattern) && transport.describe().lends != Lends::nothing;
}

void refuse_non_finite(const std::string& name, int rank, std::int64_t step, double value) {
  throw NonFiniteGradient(
      to_string({.place = "engine",
                 .what = "the gradient of " + name + " on worker " + std::to_string(rank) +
                         " in step " + std::to_string(step) + " must be finite",
                 .got = std::to_string(value),
                 .remedy = "lower lr, clip the gradients, or look at the data of that step"}));
}

Engine::Engine(EngineOptions options, Transport& transport, std::vector<Bucket> buckets)
    : options_(std::move(options)),
      pattern_(find_pattern(options_.pattern)),
      optimizer_(find_optimizer(options_.optimizer)),
      rank_(transport.describe().rank),
      runner_(transport, options_.timeout_s, options_.while_waiting),
      collectives_(runner_, options_.schedule.shape, rank_),
      begun_(buckets.size(), 0),
      finished_(buckets.size(), 0) {
  check_options(options_);
  if (transport.describe().workers != options_.schedule.shape.workers()) {
    fail_argument({.place = "engine",
                   .what = "the schedule must be for the transport's " +
                           std::to_string(transport.describe().workers) + " workers",
                   .got = std::to_string(options_.schedule.shape.workers())});
  }
  if (pattern_.rounds == Rounds::complete) {
    options_.schedule = complete_schedule(options_.schedule.shape);
  }
  if (pattern_.weighs) options_.schedule = push_sum_rounds(std::move(options_.schedule));
  if (options_.kernel_threads > 1) {
    pool_ = std::make_unique<WorkerPool>(options_.kernel_threads);
  }
  const auto spares = std::ranges::count_if(buckets, [](const Bucket& b) { return b.spare; });
  alternates_ = spares > 0 && sends_parameters_ahead(pattern_);
  GOSSAMER_ASSERT(!alternates_ || spares == std::ssize(buckets));
  for (std::size_t b = 0; b < buckets.size(); ++b) {
    if (!alternates_) buckets[b].spare = nullptr;
    lanes_.push_back(std::make_unique<Lane>(buckets[b], static_cast<int>(b), pattern_, optimizer_,
                                            options_.codec));
    lanes_.back()->set_recorder(options_.recorder);
    lanes_.back()->check_payloads(options_.check_payloads);
  }
  const bool is_scattered =
      std::ranges::any_of(lanes_, [](const auto& lane) { return lane->is_scattered(); });
  const bool is_shared = transport.describe().lends == Lends::shared_memory &&
                         options_.late == Late::wait && !alternates_;
  if ((is_scattered || is_shared) && exchanges_anything()) make_outboxes(is_shared);
}

/// The edges of all rounds that a bucket can meet.
void Engine::skip_late() {
  const Schedule& schedule = options_.schedule;
  double steps = static_cast<double>(step_);
  collectives_.mean({&steps, 1});
  // Beyond all numbers that any worker has used: one per step at most.
  const LateSpec spec{.first_number = std::llround(steps * schedule.shape.workers()),
                      .staleness = options_.staleness};
  for (const auto& lane : lanes_) {
    std::vector<std::shared_ptr<const Plan>> plans;
    for (std::int64_t t = 0; t < schedule.period; ++t) {
      plans.push_back(plan_for(t, lane->bucket().count));
    }
    std::vector<const Plan*> seen;
    for (const auto& plan : plans) seen.push_back(plan.get());
    lane->skip_late(runner_.transport(), spec, seen);
  }
  runner_.attend([this] {
    for (const auto& lane : lanes_) lane->collect_late();
  });
}

Engine::~Engine() = default;

std::vector<StateVector> Engine::state() const {
  std::vector<StateVector> all;
  for (const auto& lane : lanes_) {
    for (StateVector& vector : lane->state()) all.push_back(std::move(vector));
  }
  return all;
}

std::shared_ptr<const Plan> Engine::plan_for(std::int64_t round, std::int64_t count) {
  const Schedule& schedule = options_.schedule;
  const auto make = [&] {
    return std::make_shared<const Plan>(compile(round_at(schedule, round, losses_), schedule.shape,
                                                rank_, count, plan_options(options_)));
  };
  if (schedule.period == 0) return make();
  auto& cached = plans_[{round % schedule.period, count}];
  if (!cached) cached = make();
  return cached;
}

/// Whether the next round is known, and what it sends is ready, before the step has ended.
bool Engine::sends_ahead() const {
  return pattern_.launch == Launch::after_previous_update && !options_.schedule.loss_driven;
}

/// Note [Second stages first]: a bucket's next payloads leave as soon as it is updated, unless
/// there may be second stages under way: those are waited for, and would queue behind what has a
/// whole forward's time.
bool Engine::sends_at_once() const { return sends_ahead() && pattern_.stages() == 1; }

std::int64_t Engine::round_of(const Lane& lane, std::int64_t step) const {
  const bool shifts = options_.stagger && !options_.schedule.loss_driven;
  return step + (shifts ? lane.index() : 0);
}

double Engine::weight_in(std::int64_t round) const {
  const auto& weights = options_.schedule.weights;
  return weights ? weights(round)[static_cast<std::size_t>(rank_)] : 1;
}

void Engine::expect(Lane& lane, std::int64_t exchange) {
  const std::int64_t round = round_of(lane, exchange / pattern_.stages());
  lane.expect(runner_, plan_for(round, lane.bucket().count), exchange);
}

void Engine::launch(Lane& lane, std::int64_t exchange) {
  if (!lane.expects(exchange)) expect(lane, exchange);
  lane.launch(runner_, exchange);
  if (sends_ahead()) expect(lane, exchange + 1);
}

void Engine::start() {
  for (const auto& lane : lanes_) {
    std::vector<std::byte> values(lane->bytes());
    lane->read_parameters(values.data());
    collectives_.broadcast(values);
    lane->write_parameters(values.data());
  }
  set_anchors();
  start_at(0);
}

void Engine::set_anchors() {
  for (const auto& lane : lanes_) lane->set_anchors();
}

void Engine::start_at(std::int64_t step) {
  GOSSAMER_ASSERT(!started_);
  started_ = true;
  step_ = step;
  if (options_.recorder != nullptr) options_.recorder->begin_step(step);
  if (options_.late == Late::skip) skip_late();
  if (pattern_.launch == Launch::after_previous_update) launch_all();
}

/// The step's first payloads; those of the buckets first that the backward completes first.
void Engine::launch_all() {
  for (const auto& lane : lanes_) launch(*lane, step_ * pattern_.stages());
}

std::vector<StepNumbers> Engine::numbers(const Lane& lane) const {
  const std::int64_t round = round_of(lane, step_);
  const double weight = weight_in(round);
  std::vector<StepNumbers> all;
  for (const Hyper& hyper : options_.groups) {
    const std::int64_t t = hyper.t > 0 ? hyper.t : step_ + 1;
    all.push_back({hyper, t, grad_scale_ * hyper.grad_scale, round, weight});
  }
  return all;
}

void Engine::check_gradient(const Lane& lane, double norm_squared) const {
  if (std::isfinite(norm_squared)) return;
  const std::int64_t element = lane.first_non_finite();
  if (element < 0) return;  // the sum of squares overflowed: clipping by it gives zero
  const double value = lane.gradient_at(element);
  const std::string name = options_.name_of ? options_.name_of(lane.index(), element)
                                            : "bucket " + std::to_string(lane.index()) +
                                                  ", element " + std::to_string(element);
  refuse_non_finite(name, rank_, step_ + 1, value);
}

void Engine::wait(Lane& lane) {
  const auto begin = Clock::now();
  lane.wait();
  overlap_.waits.push_back({begin, Clock::now()});
  record(Kind::wait, lane.index());
}

void Engine::set_groups(std::vector<Hyper> groups) {
  for (const Hyper& hyper : groups) check_hyper(hyper);
  options_.groups = std::move(groups);
}

void Engine::set_segments(int bucket, std::vector<Segment> segments) {
  lanes_.at(static_cast<std::size_t>(bucket))->set_segments(std::move(segments));
}

void Engine::quiesce() {
  for (const auto& lane : lanes_) lane->wait();
  for (const auto& lane : lanes_) lane->take_over();  // before anybody waits for its return
  for (const auto& lane : lanes_) lane->wait_all_back();
}

void Engine::begin_bucket(Lane& lane) {
  begun_[static_cast<std::size_t>(lane.index())] = 1;
  if (pattern_.launch == Launch::after_previous_update) return;
  lane.prepare(numbers(lane), pool_.get(), false);
  launch(lane, step_ * pattern_.stages());
  record(Kind::update, lane.index());
}

/// Of one stage; the bucket's step is not finished where it sends another.
void Engine::finish_stage(Lane& lane) {
  wait(lane);
  const std::size_t earlier = overlap_.journeys.size();
  lane.add_journeys(overlap_.journeys);
  if (options_.recorder != nullptr) {
    options_.recorder->exchanged(lane.index(), std::span(overlap_.journeys).subspan(earlier));
  }
  const bool goes_on = lane.has_next_stage();
  distance_squared_ += lane.combine(numbers(lane), pool_.get(), options_.measure_distance);
  finished_[static_cast<std::size_t>(lane.index())] = !goes_on;
  if (goes_on) launch(lane, step_ * pattern_.stages() + 1);
  if (sends_at_once()) launch(lane, step_ + 1);
  record(Kind::update, lane.index());
}

/// Neighbours left out so far, by bucket.
std::int64_t Engine::skipped() const {
  std::int64_t sum = 0;
  for (const auto& lane : lanes_) sum += lane->skipped();
  return sum;
}

/// Index of one that need not wait, the first of those; waits for one.
std::size_t Engine::first_ready(const std::vector<Lane*>& open) {
  const auto begin = Clock::now();
  const Deadline deadline = deadline_after(options_.timeout_s);
  for (;;) {
    for (std::size_t k = 0; k < open.size(); ++k) {
      if (!open[k]->is_ready(deadline)) continue;
      overlap_.waits.push_back({begin, Clock::now()});
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
  std::vector<Lane*> open;
  for (const auto& lane : std::views::reverse(lanes_)) {
    if (!finished_[static_cast<std::size_t>(lane->index())]) open.push_back(lane.get());
  }
  while (!open.empty()) {
    const std::size_t next = first_ready(open);
    finish_stage(*open[next]);
    const bool is_done = finished_[static_cast<std::size_t>(open[next]->index())] != 0;
    if (is_done) open.erase(open.begin() + static_cast<std::ptrdiff_t>(next));
  }
}

void Engine::gradient_ready(int bucket) {
  GOSSAMER_ASSERT(started_);
  if (options_.update == UpdateAt::step) return;
  Lane& lane = *lanes_.at(static_cast<std::size_t>(bucket));
  GOSSAMER_ASSERT(!begun_[static_cast<std::size_t>(bucket)]);
  if (options_.check_gradients) {
    const double squared = lane.local_norm_squared(pool_.get());
    check_gradient(lane, squared);
    norm_squared_ += squared;
  }
  begin_bucket(lane);
  record(Kind::update, bucket);
  if (pattern_.launch == Launch::after_previous_update) finish_stage(lane);
}

/// Looks at all local gradients before anything is touched or sent; sets the clipping factor where
/// the local gradient is what is stepped with.
double Engine::check_and_measure_gradients() {
  for (const auto& lane : lanes_) {
    if (begun_[static_cast<std::size_t>(lane->index())]) continue;
    const double squared = lane->local_norm_squared(pool_.get());
    check_gradient(*lane, squared);
    norm_squared_ += squared;
  }
  return norm_squared_;
}

StepReport Engine::step(double loss) {
  GOSSAMER_ASSERT(started_ && local_.empty());
  const bool steps_with_mean = pattern_.launch == Launch::before_update;
  grad_scale_ = 1;
  if (wants_norm() && !(steps_with_mean && !options_.check_gradients)) {
    check_and_measure_gradients();
    record(Kind::update);
  }
  const auto set_scale = [&] {
    const double norm = std::sqrt(norm_squared_);
    if (options_.clip_norm > 0 && norm > options_.clip_norm)
      grad_scale_ = options_.clip_norm / norm;
  };
  if (!steps_with_mean) set_scale();
  for (const auto& lane : std::views::reverse(lanes_)) {
    if (!begun_[static_cast<std::size_t>(lane->index())]) begin_bucket(*lane);
  }
  if (steps_with_mean && options_.clip_norm > 0) {
    norm_squared_ = 0;
    for (const auto& lane : lanes_) {
      wait(*lane);
      norm_squared_ += lane->mean_norm_squared(pool_.get());
      record(Kind::update, lane->index());
    }
    set_scale();
  }
  finish_buckets();
  if (options_.schedule.loss_driven) {
    agree_on_loss(loss);
    record(Kind::wait);
  }
  ++step_;
  if (pattern_.launch == Launch::after_previous_update && !sends_at_once()) launch_all();
  const StepReport report{.step = step_,
                          .grad_norm = std::sqrt(norm_squared_),
                          .exposed_s = overlap_.exposed_s(),
                          .hidden_s = overlap_.hidden_s(),
                          .skipped = skipped() - skipped_,
                          .distance = std::sqrt(distance_squared_)};
  skipped_ += report.skipped;
  norm_squared_ = distance_squared_ = 0;
  overlap_ = {};
  grad_scale_ = 1;
  begun_.assign(begun_.size(), 0);
  finished_.assign(finished_.size(), 0);
  if (options_.recorder != nullptr) options_.recorder->begin_step(step_);
  return report;
}

}  // namespace gossamer
