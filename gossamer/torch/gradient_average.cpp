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
constexpr std::int32_t kFirstStream = -2;

/// Tensors that travel together: their elements one after the other, then for each whether its
/// gradient is there.
struct GradientBucket {
  DType dtype = DType::f32;
  std::vector<std::size_t> tensors;
  std::vector<at::Tensor> views;  ///< of `flat`, by tensor
  at::Tensor flat;
  Plan plan;
  Arena arena;
  std::shared_ptr<Exchange> exchange;  ///< of this pass, or of the last one
  bool is_under_way = false;
  std::size_t hooked = 0;  ///< tensors that can get a gradient
  std::size_t missing = 0;

  std::int64_t count = 0;  ///< elements of `flat`

  std::int64_t elements() const { return count - std::ssize(tensors); }
  std::size_t flat_bytes() const {
    return aligned(static_cast<std::size_t>(count) * size_of(dtype));
  }
};

}  // namespace

struct GradientAverage::State {
  std::vector<at::Tensor> tensors;
  std::vector<GradientBucket> buckets;
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
  void place_buckets();
  void begin_pass(const std::shared_ptr<State>& self);
  void launch(std::size_t b);
  void finish_pass();
  void collect(std::size_t b);
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
    const bool fits =
        !buckets.empty() && buckets.back().dtype == dtype && bytes + size <= options.bucket_bytes;
    if (!fits) {
      buckets.push_back({.dtype = dtype});
      bytes = 0;
    }
    buckets.back().tensors.push_back(i);
    bucket_of[i] = buckets.size() - 1;
    bytes += size;
  }
  for (GradientBucket& bucket : buckets) {
    bucket.count = std::ssize(bucket.tensors);
    for (const std::size_t i : bucket.tensors) bucket.count += as_real(tensors[i]).numel();
    bucket.plan = compile(complete_round(shape.workers()), shape, rank, bucket.count,
                          {.finished_averages = true, .codec = options.codec});
  }
  place_buckets();
  for (GradientBucket& bucket : buckets) {
    std::int64_t offset = 0;
    for (const std::size_t i : bucket.tensors) {
      const at::Tensor real = as_real(tensors[i].detach());
      bucket.views.push_back(view_like(bucket.flat, offset, real));
      offset += real.numel();
    }
  }
}

/// Gives the buckets their memory: one that peers can read, where the transport lends it.
void GradientAverage::State::place_buckets() {
  const bool is_shared = runner->transport().describe().lends == Lends::shared_memory;
  std::size_t bytes = 0;
  for (const GradientBucket& bucket : buckets) {
    bytes += bucket.flat_bytes() + Arena::bytes_for(bucket.plan, bucket.dtype);
  }
  if (is_shared) shared = std::make_shared<const SharedMemory>(bytes);
  std::byte* begin = is_shared ? shared->data() : nullptr;
  for (GradientBucket& bucket : buckets) {
    const auto options = at::dtype(to_scalar_type(bucket.dtype));
    if (!is_shared) {
      bucket.flat = at::zeros({bucket.count}, options);
      continue;
    }
    bucket.flat = at::from_blob(begin, {bucket.count}, [keeps = shared](void*) {}, options);
    begin += bucket.flat_bytes();
    const std::size_t arena_bytes = Arena::bytes_for(bucket.plan, bucket.dtype);
    bucket.arena.use(shared, {begin, arena_bytes});
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

void GradientAverage::State::launch(std::size_t b) {
  const at::NoGradGuard no_grad;
  GradientBucket& bucket = buckets[b];
  if (bucket.exchange) bucket.exchange->wait_all_back();  // peers may still have read the last one
  at::Tensor present = bucket.flat.narrow(0, bucket.elements(), std::ssize(bucket.tensors));
  for (std::size_t k = 0; k < bucket.tensors.size(); ++k) {
    const at::Tensor& gradient = tensors[bucket.tensors[k]].grad();
    if (gradient.defined()) {
      bucket.views[k].copy_(as_real(gradient.detach()));
    } else {
      bucket.views[k].zero_();
    }
    present[static_cast<std::int64_t>(k)].fill_(gradient.defined() ? 1.0 : 0.0);
  }
  std::optional<std::int64_t> recorded_step;
  if (recorder != nullptr) recorded_step = recorder->step();  // of which there may be fewer
  bucket.exchange = runner->launch({.plan = &bucket.plan,
                                    .dtype = bucket.dtype,
                                    .arena = &bucket.arena,
                                    .step = passes,
                                    .stream = kFirstStream - static_cast<std::int32_t>(b),
                                    .recorder = recorder,
                                    .recorded_step = recorded_step},
                                   {.data = bucket.flat.const_data_ptr(), .owner = shared});
  bucket.is_under_way = true;
}

/// Copies elements [begin, begin + count) of the means that have arrived.
void copy_means(const GradientBucket& bucket, std::int64_t begin, std::int64_t count, void* into) {
  const std::size_t element = size_of(bucket.dtype);
  for (const Piece& piece : bucket.plan.pieces) {
    const std::int64_t first = std::max(begin, piece.offset);
    const std::int64_t last = std::min(begin + count, piece.offset + piece.count);
    if (first >= last) continue;
    const Slice own{0, piece.offset, piece.count};  // alone: the mean is what was sent
    const std::byte* mean = bucket.exchange->at(piece.terms.empty() ? own : piece.terms[0].slice);
    std::memcpy(static_cast<std::byte*>(into) + static_cast<std::size_t>(first - begin) * element,
                mean + static_cast<std::size_t>(first - piece.offset) * element,
                static_cast<std::size_t>(last - first) * element);
  }
}

/// Brings the mean of a bucket to its gradients.
void GradientAverage::State::collect(std::size_t b) {
  GradientBucket& bucket = buckets[b];
  const auto begin = Clock::now();
  bucket.exchange->wait();
  bucket.is_under_way = false;
  overlap.waits.push_back({begin, Clock::now()});
  overlap.journeys.push_back(bucket.exchange->journey());
  record(TimelineEvent::Kind::wait, b);
  if (recorder != nullptr) {
    recorder->exchanged(static_cast<int>(b), std::span(overlap.journeys).last(1));
  }
  at::Tensor present =
      at::empty({std::ssize(bucket.tensors)}, at::dtype(to_scalar_type(bucket.dtype)));
  copy_means(bucket, bucket.elements(), present.numel(), present.mutable_data_ptr());
  for (std::size_t k = 0; k < bucket.tensors.size(); ++k) {
    if (present[static_cast<std::int64_t>(k)].item<double>() == 0) continue;
    at::Tensor& tensor = tensors[bucket.tensors[k]];
    if (!tensor.grad().defined()) tensor.mutable_grad() = at::empty_like(tensor.detach());
    const at::Tensor& view = bucket.views[k];
    const at::Tensor gradient = as_real(tensor.mutable_grad().detach());
    const bool fits =
        gradient.strides() == view.strides() && gradient.scalar_type() == view.scalar_type();
    const at::Tensor means = fits ? gradient : at::empty_like(view);
    copy_means(bucket, view.storage_offset(), view.numel(), means.mutable_data_ptr());
    if (fits) {
      torch::autograd::impl::bump_version(tensor.mutable_grad());
    } else {
      gradient.copy_(means);
    }
  }
  bucket.exchange->finish();
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
  for (std::size_t b = 0; b < buckets.size(); ++b) collect(b);
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
  GOSSAMER_ASSERT(options.codec != Codec::int8);
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
  for (GradientBucket& bucket : state_->buckets) bucket.exchange.reset();
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
