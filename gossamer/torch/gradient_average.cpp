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
  std::shared_ptr<Exchange> exchange;
  std::size_t hooked = 0;  ///< tensors that can get a gradient
  std::size_t missing = 0;

  std::int64_t elements() const { return flat.numel() - std::ssize(tensors); }
};

}  // namespace

struct GradientAverage::State {
  std::vector<at::Tensor> tensors;
  std::vector<GradientBucket> buckets;
  std::vector<std::size_t> bucket_of;
  std::vector<bool> arrived;
  std::vector<c10::intrusive_ptr<torch::autograd::Node>> accumulators;
  ExchangeRunner* runner = nullptr;  ///< null when the owner is gone
  std::int64_t passes = 0;
  bool enabled = true;
  bool in_pass = false;
  double exposed_s = 0;

  void make_buckets(std::int64_t bucket_bytes, const HostShape& shape, int rank);
  void arrive(std::size_t i, const std::shared_ptr<State>& self);
  void begin_pass(const std::shared_ptr<State>& self);
  void launch(std::size_t b);
  void finish_pass();
  void collect(GradientBucket& bucket);
};

void GradientAverage::State::make_buckets(std::int64_t bucket_bytes, const HostShape& shape,
                                          int rank) {
  std::int64_t bytes = 0;
  bucket_of.resize(tensors.size());
  for (std::size_t i = tensors.size(); i-- > 0;) {
    const DType dtype = mixing_dtype(tensors[i]);
    const auto size = static_cast<std::int64_t>(size_of(dtype)) * as_real(tensors[i]).numel();
    const bool fits =
        !buckets.empty() && buckets.back().dtype == dtype && bytes + size <= bucket_bytes;
    if (!fits) {
      buckets.push_back({.dtype = dtype});
      bytes = 0;
    }
    buckets.back().tensors.push_back(i);
    bucket_of[i] = buckets.size() - 1;
    bytes += size;
  }
  for (GradientBucket& bucket : buckets) {
    std::int64_t count = 0;
    for (const std::size_t i : bucket.tensors) count += as_real(tensors[i]).numel();
    bucket.flat =
        at::zeros({count + std::ssize(bucket.tensors)}, at::dtype(to_scalar_type(bucket.dtype)));
    std::int64_t offset = 0;
    for (const std::size_t i : bucket.tensors) {
      const at::Tensor real = as_real(tensors[i].detach());
      bucket.views.push_back(view_like(bucket.flat, offset, real));
      offset += real.numel();
    }
    bucket.plan = compile(complete_round(shape.workers()), shape, rank, bucket.flat.numel(),
                          {.finished_averages = true});
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
  bucket.exchange = runner->launch({.plan = &bucket.plan,
                                    .dtype = bucket.dtype,
                                    .arena = &bucket.arena,
                                    .step = passes,
                                    .stream = kFirstStream - static_cast<std::int32_t>(b)},
                                   {.data = bucket.flat.const_data_ptr()});
}

/// Brings the mean of a bucket to its gradients.
void GradientAverage::State::collect(GradientBucket& bucket) {
  const auto begin = Clock::now();
  bucket.exchange->wait();
  exposed_s += std::chrono::duration<double>(Clock::now() - begin).count();
  auto* flat = static_cast<std::byte*>(bucket.flat.mutable_data_ptr());
  for (const Piece& piece : bucket.plan.pieces) {
    if (piece.terms.empty()) continue;  // alone: the mean is what was sent
    std::memcpy(flat + static_cast<std::size_t>(piece.offset) * size_of(bucket.dtype),
                bucket.exchange->at(piece.terms[0].slice),
                static_cast<std::size_t>(piece.count) * size_of(bucket.dtype));
  }
  bucket.exchange->finish();
  bucket.exchange.reset();
  const at::Tensor present = bucket.flat.narrow(0, bucket.elements(), std::ssize(bucket.tensors));
  for (std::size_t k = 0; k < bucket.tensors.size(); ++k) {
    if (present[static_cast<std::int64_t>(k)].item<double>() == 0) continue;
    at::Tensor& tensor = tensors[bucket.tensors[k]];
    if (!tensor.grad().defined()) tensor.mutable_grad() = at::empty_like(tensor.detach());
    as_real(tensor.mutable_grad().detach()).copy_(bucket.views[k]);
  }
}

void GradientAverage::State::finish_pass() {
  const at::NoGradGuard no_grad;
  in_pass = false;
  if (runner == nullptr) return;
  for (std::size_t b = 0; b < buckets.size(); ++b) {
    if (!buckets[b].exchange) launch(b);
  }
  for (GradientBucket& bucket : buckets) collect(bucket);
  ++passes;
}

GradientAverage::GradientAverage(std::vector<at::Tensor> tensors, std::int64_t bucket_bytes,
                                 ExchangeRunner& runner, HostShape shape, int rank)
    : state_(std::make_shared<State>()) {
  state_->tensors = std::move(tensors);
  state_->runner = &runner;
  state_->make_buckets(bucket_bytes, shape, rank);
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

double GradientAverage::exposed_s() const { return state_->exposed_s; }

}  // namespace gossamer
