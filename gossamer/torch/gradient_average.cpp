#include "gossamer/torch/gradient_average.h"

#include <ATen/ATen.h>
#include <torch/csrc/autograd/engine.h>
#include <torch/csrc/autograd/utils/lambda_post_hook.h>
#include <torch/csrc/autograd/variable.h>

#include <algorithm>
#include <cstring>

#include "gossamer/base/errors.h"
#include "gossamer/torch/tensor_types.h"
#include "gossamer/torch/tensor_views.h"

namespace gossamer {
namespace {

// Streams of the engine are not below −1.
constexpr std::int32_t kPresenceStream = -2;
constexpr std::int32_t kFirstStream = -3;

/// What is averaged in one exchange.
struct FlatAverage {
  DType dtype = DType::f32;
  std::int64_t count = 0;  ///< elements of `flat`
  at::Tensor flat;
  Plan plan;
  Arena arena;
  std::shared_ptr<Exchange> exchange;  ///< of this pass, or of the last one

  std::size_t flat_bytes() const {
    return aligned(static_cast<std::size_t>(count) * size_of(dtype));
  }
};

/// Tensors that travel together, their elements one after the other.
struct GradientBucket {
  FlatAverage average;
  std::vector<std::size_t> tensors;
  std::vector<at::Tensor> views;  ///< of the average's `flat`, by tensor
  bool is_under_way = false;
  std::size_t hooked = 0;  ///< tensors that can get a gradient
  std::size_t missing = 0;
};

}  // namespace

struct GradientAverage::State {
  std::vector<at::Tensor> tensors;
  std::vector<GradientBucket> buckets;
  FlatAverage presence;  ///< by tensor: 1 where there is a gradient, 0 elsewhere
  std::vector<std::size_t> bucket_of;
  std::vector<bool> arrived;
  std::vector<c10::intrusive_ptr<torch::autograd::Node>> accumulators;
  ExchangeRunner* runner = nullptr;            ///< null when the owner is gone
  Recorder* recorder = nullptr;                ///< null: nobody is told
  std::shared_ptr<const SharedMemory> shared;  ///< what flats and arenas lie in, if they do
  std::int64_t passes = 0;
  bool enabled = true;
  bool in_pass = false;
  Overlap overlap;  ///< of the pass under way
  double exposed_s = 0;
  double hidden_s = 0;

  void make_buckets(const GradientOptions& options, const HostShape& shape, int rank);
  void arrive(std::size_t i, const std::shared_ptr<State>& self);
  void place();
  void begin_pass(const std::shared_ptr<State>& self);
  void start(FlatAverage& average, std::int32_t stream, bool is_recorded);
  void launch(std::size_t b);
  void launch_presence();
  void finish_pass();
  void wait_for(const FlatAverage& average);
  at::Tensor collect_presence();
  void collect(std::size_t b, const at::Tensor& present);
  void record(TimelineEvent::Kind kind, std::size_t b) const {
    if (recorder != nullptr) recorder->did(kind, static_cast<int>(b));
  }
};

void GradientAverage::State::make_buckets(const GradientOptions& options, const HostShape& shape,
                                          int rank) {
  std::int64_t bytes = 0;
  bucket_of.resize(tensors.size());
  for (std::size_t i = tensors.size(); i-- > 0;) {
    const DType dtype = mixing_dtype(tensors[i]);
    const auto size = static_cast<std::int64_t>(size_of(dtype)) * as_real(tensors[i]).numel();
    const bool fits = !buckets.empty() && buckets.back().average.dtype == dtype &&
                      bytes + size <= options.bucket_bytes;
    if (!fits) {
      buckets.push_back({.average = {.dtype = dtype}});
      bytes = 0;
    }
    buckets.back().tensors.push_back(i);
    bucket_of[i] = buckets.size() - 1;
    bytes += size;
  }
  const auto plan = [&](FlatAverage& average, Codec codec) {
    average.plan = compile(complete_round(shape.workers()), shape, rank, average.count,
                           {.finished_averages = true, .codec = codec});
  };
  for (GradientBucket& bucket : buckets) {
    for (const std::size_t i : bucket.tensors) bucket.average.count += as_real(tensors[i]).numel();
    plan(bucket.average, options.codec);
  }
  presence.count = std::ssize(tensors);
  plan(presence, Codec::fp32);
  place();
  for (GradientBucket& bucket : buckets) {
    std::int64_t offset = 0;
    for (const std::size_t i : bucket.tensors) {
      const at::Tensor real = as_real(tensors[i].detach());
      bucket.views.push_back(view_like(bucket.average.flat, offset, real));
      offset += real.numel();
    }
  }
}

/// Gives the averages their memory: one that peers can read, where the transport lends it.
void GradientAverage::State::place() {
  std::vector<FlatAverage*> averages{&presence};
  for (GradientBucket& bucket : buckets) averages.push_back(&bucket.average);
  const bool is_shared = runner->transport().describe().lends == Lends::shared_memory;
  std::size_t bytes = 0;
  for (const FlatAverage* average : averages) {
    bytes += average->flat_bytes() + Arena::bytes_for(average->plan, average->dtype);
  }
  if (is_shared) shared = std::make_shared<const SharedMemory>(bytes);
  std::byte* begin = is_shared ? shared->data() : nullptr;
  for (FlatAverage* average : averages) {
    const auto options = at::dtype(to_scalar_type(average->dtype));
    if (!is_shared) {
      average->flat = at::zeros({average->count}, options);
      continue;
    }
    average->flat = at::from_blob(begin, {average->count}, [keeps = shared](void*) {}, options);
    begin += average->flat_bytes();
    const std::size_t arena_bytes = Arena::bytes_for(average->plan, average->dtype);
    average->arena.use(shared, {begin, arena_bytes});
    begin += arena_bytes;
  }
}

void GradientAverage::State::begin_pass(const std::shared_ptr<State>& self) {
  in_pass = true;
  arrived.assign(tensors.size(), false);
  for (GradientBucket& bucket : buckets) bucket.missing = bucket.hooked;
  torch::autograd::Engine::get_default_engine().queue_callback([self] { self->finish_pass(); });
}

void GradientAverage::State::arrive(std::size_t i, const std::shared_ptr<State>& self) {
  if (runner == nullptr || !enabled) return;
  if (!in_pass) begin_pass(self);
  if (arrived[i]) {
    fail_argument({.place = "Gossip",
                   .what = "a second gradient arrived for a parameter in one backward pass",
                   .got = "shape " + c10::str(tensors[i].sizes()),
                   .remedy = "use non-reentrant checkpointing (use_reentrant=False)"});
  }
  arrived[i] = true;
  if (--buckets[bucket_of[i]].missing == 0) launch(bucket_of[i]);
}

void GradientAverage::State::start(FlatAverage& average, std::int32_t stream, bool is_recorded) {
  Recorder* told = is_recorded ? recorder : nullptr;
  std::optional<std::int64_t> recorded_step;
  if (told != nullptr) recorded_step = told->step();  // of which there may be fewer
  average.exchange = runner->launch({.plan = &average.plan,
                                     .dtype = average.dtype,
                                     .arena = &average.arena,
                                     .step = passes,
                                     .stream = stream,
                                     .recorder = told,
                                     .recorded_step = recorded_step},
                                    {.data = average.flat.const_data_ptr(), .owner = shared});
}

/// Waits until peers have read what the last pass sent.
void wait_back(const FlatAverage& average) {
  if (average.exchange) average.exchange->wait_all_back();
}

void GradientAverage::State::launch(std::size_t b) {
  const at::NoGradGuard no_grad;
  GradientBucket& bucket = buckets[b];
  wait_back(bucket.average);
  for (std::size_t k = 0; k < bucket.tensors.size(); ++k) {
    const at::Tensor& gradient = tensors[bucket.tensors[k]].grad();
    if (gradient.defined()) {
      bucket.views[k].copy_(as_real(gradient.detach()));
    } else {
      bucket.views[k].zero_();
    }
  }
  start(bucket.average, kFirstStream - static_cast<std::int32_t>(b), true);
  bucket.is_under_way = true;
}

/// By itself, and never coded: next to gradients a codec would lose it.
void GradientAverage::State::launch_presence() {
  wait_back(presence);
  auto* present = presence.flat.mutable_data_ptr<float>();
  for (const at::Tensor& tensor : tensors) *present++ = tensor.grad().defined() ? 1.0F : 0.0F;
  start(presence, kPresenceStream, false);
}

/// Copies elements [begin, begin + count) of the means that have arrived.
void copy_means(const FlatAverage& average, std::int64_t begin, std::int64_t count, void* into) {
  const std::size_t element = size_of(average.dtype);
  for (const Piece& piece : average.plan.pieces) {
    const std::int64_t first = std::max(begin, piece.offset);
    const std::int64_t last = std::min(begin + count, piece.offset + piece.count);
    if (first >= last) continue;
    const Slice own{0, piece.offset, piece.count};  // alone: the mean is what was sent
    const std::byte* mean = average.exchange->at(piece.terms.empty() ? own : piece.terms[0].slice);
    std::memcpy(static_cast<std::byte*>(into) + static_cast<std::size_t>(first - begin) * element,
                mean + static_cast<std::size_t>(first - piece.offset) * element,
                static_cast<std::size_t>(last - first) * element);
  }
}

void GradientAverage::State::wait_for(const FlatAverage& average) {
  const auto begin = Clock::now();
  average.exchange->wait();
  overlap.waits.push_back({begin, Clock::now()});
  overlap.journeys.push_back(average.exchange->journey());
}

/// By tensor: 0 where no worker has a gradient.
at::Tensor GradientAverage::State::collect_presence() {
  wait_for(presence);
  at::Tensor present = at::empty({presence.count}, at::dtype(at::kFloat));
  copy_means(presence, 0, presence.count, present.mutable_data_ptr());
  presence.exchange->finish();
  return present;
}

/// Brings the mean of a bucket to its gradients.
void GradientAverage::State::collect(std::size_t b, const at::Tensor& present) {
  GradientBucket& bucket = buckets[b];
  const FlatAverage& average = bucket.average;
  wait_for(average);
  bucket.is_under_way = false;
  record(TimelineEvent::Kind::wait, b);
  if (recorder != nullptr) {
    recorder->exchanged(static_cast<int>(b), std::span(overlap.journeys).last(1));
  }
  const auto* has_gradient = present.const_data_ptr<float>();
  for (std::size_t k = 0; k < bucket.tensors.size(); ++k) {
    if (has_gradient[bucket.tensors[k]] == 0) continue;
    at::Tensor& tensor = tensors[bucket.tensors[k]];
    if (!tensor.grad().defined()) tensor.mutable_grad() = at::empty_like(tensor.detach());
    const at::Tensor& view = bucket.views[k];
    const at::Tensor gradient = as_real(tensor.mutable_grad().detach());
    const bool fits =
        gradient.strides() == view.strides() && gradient.scalar_type() == view.scalar_type();
    const at::Tensor means = fits ? gradient : at::empty_like(view);
    copy_means(average, view.storage_offset(), view.numel(), means.mutable_data_ptr());
    if (fits) {
      torch::autograd::impl::bump_version(tensor.mutable_grad());
    } else {
      gradient.copy_(means);
    }
  }
  average.exchange->finish();
  record(TimelineEvent::Kind::update, b);
}

void GradientAverage::State::finish_pass() {
  const at::NoGradGuard no_grad;
  in_pass = false;
  if (runner == nullptr) return;
  for (std::size_t b = 0; b < buckets.size(); ++b) {
    if (buckets[b].is_under_way) continue;
    launch(b);
    record(TimelineEvent::Kind::backward, b);
  }
  launch_presence();
  const at::Tensor present = collect_presence();
  for (std::size_t b = 0; b < buckets.size(); ++b) collect(b, present);
  exposed_s += overlap.exposed_s();
  hidden_s += overlap.hidden_s();
  overlap = {};
  ++passes;
}

GradientAverage::GradientAverage(std::vector<at::Tensor> tensors, const GradientOptions& options,
                                 ExchangeRunner& runner, HostShape shape, int rank)
    : state_(std::make_shared<State>()) {
  state_->tensors = std::move(tensors);
  state_->runner = &runner;
  state_->recorder = options.recorder;
  state_->make_buckets(options, shape, rank);
  for (std::size_t i = 0; i < state_->tensors.size(); ++i) {
    if (!state_->tensors[i].requires_grad()) continue;
    auto accumulator = torch::autograd::impl::grad_accumulator(state_->tensors[i]);
    const std::weak_ptr<State> state = state_;
    accumulator->add_post_hook(std::make_unique<torch::autograd::utils::LambdaPostHook>(
        [state, i](const auto& outputs, const auto&) {
          if (const auto alive = state.lock()) alive->arrive(i, alive);
          return outputs;
        }));
    state_->accumulators.push_back(std::move(accumulator));
    ++state_->buckets[state_->bucket_of[i]].hooked;
  }
}

GradientAverage::~GradientAverage() {
  state_->runner = nullptr;
  state_->presence.exchange.reset();
  for (GradientBucket& bucket : state_->buckets) bucket.average.exchange.reset();
}

void GradientAverage::set_enabled(bool enabled) { state_->enabled = enabled; }

void GradientAverage::pass_without_backward() {
  GOSSAMER_ASSERT(!state_->in_pass);
  state_->finish_pass();
}

std::int64_t GradientAverage::passes() const { return state_->passes; }

double GradientAverage::exposed_s() const { return state_->exposed_s; }

double GradientAverage::hidden_s() const { return state_->hidden_s; }

}  // namespace gossamer
