#include "gossamer/torch/gradient_average.h"

#include <ATen/ATen.h>
#include <torch/csrc/autograd/engine.h>
#include <torch/csrc/autograd/variable.h>

#include <algorithm>
#include <list>
#include <optional>
#include <utility>

#include "gossamer/base/errors.h"
#include "gossamer/torch/arrivals.h"
#include "gossamer/torch/gradient_buckets.h"
#include "gossamer/torch/gradient_presence.h"
#include "gossamer/torch/gradient_streams.h"
#include "gossamer/torch/row_average.h"
#include "gossamer/torch/tensor_views.h"

namespace gossamer {
namespace {

constexpr const char* kPlace = "Gossip";
/// Sets of tensors that are trained in turn, as in alternating training, keep their buckets.
constexpr std::size_t kKeptBuckets = 3;

/// Held by what autograd calls at the end of a pass: expires if the pass fails.
struct Pass {
  bool has_ended = false;
};

}  // namespace

struct GradientAverage::State {
  std::vector<AveragedTensor> named;
  std::vector<at::Tensor> tensors;
  GradientOptions options;
  Averagers all;  ///< the runner is null when the owner is gone
  std::optional<Arrivals> arrivals;
  bool enabled = true;

  std::list<GradientBuckets> kept;  ///< the first are those of this pass, or of the last one
  std::optional<GradientPresence> presence;
  std::vector<char> travels;  ///< by tensor: in this pass
  std::vector<char> sparse;   ///< by tensor: some worker's gradient has been
  std::optional<RowAverage> rows;

  // The pass under way.
  bool is_open = false;
  std::weak_ptr<Pass> pass;  ///< none without a backward
  int round = 0;
  bool is_dropped = false;  ///< its means are not wanted any more
  std::vector<char> arrived;
  Overlap overlap;
  std::string failure;  ///< of an earlier pass

  // What has been averaged.
  std::vector<GradientMark> means;  ///< by tensor: as the last pass left its gradient
  std::vector<char> is_mean;        ///< by tensor: since the last step, and nothing has come since
  bool has_passed = false;          ///< since the last step
  std::size_t steps = 0;
  std::int64_t passes = 0;
  double exposed_s = 0;
  double hidden_s = 0;

  std::vector<GradientBucket>& buckets() { return kept.front().buckets; }
  bool is_in_pass() const {
    const auto alive = pass.lock();
    return is_open && alive && !alive->has_ended;
  }
  bool is_new(std::size_t i) const;
  bool are_averaged() const;

  void arrive(std::size_t i, const std::shared_ptr<State>& self);
  void begin_pass(const std::shared_ptr<State>& self);
  void open(bool in_step);
  void choose_buckets();
  void drop_failed();
  void finish_now();
  void queue_round(const std::shared_ptr<State>& self, const std::shared_ptr<Pass>& token);
  bool advance();
  bool next_round();
  void launch_all();
  void launch(std::size_t b);
  void write(std::size_t i, const at::Tensor& into) const;
  void launch_presence();
  void wait_for(FlatAverage& average);
  std::vector<char> collect_presence();
  void collect(std::size_t b, const std::vector<char>& is_there);
  void start_rows();
  void end_pass();
  void record(TimelineEvent::Kind kind, std::size_t b) const {
    if (options.recorder != nullptr) options.recorder->did(kind, static_cast<int>(b));
  }
};

// Passes.

void GradientAverage::State::arrive(std::size_t i, const std::shared_ptr<State>& self) {
  if (all.runner == nullptr) return;
  if (!enabled) {
    is_mean[i] = 0;
    return;
  }
  if (!is_in_pass()) {
    // A hook that has stepped was called before this one, and its step has averaged the gradient.
    const at::Tensor& gradient = tensors[i].grad();
    if (!gradient.defined() || means[i].is_of(gradient)) return;
    begin_pass(self);
  }
  is_mean[i] = 0;
  if (arrived[i] != 0) {
    fail_argument({.place = kPlace,
                   .what = "a second gradient arrived for parameter '" + named[i].name +
                           "' in one backward pass",
                   .got = "shape " + c10::str(tensors[i].sizes()),
                   .remedy = "use non-reentrant checkpointing (use_reentrant=False)"});
  }
  arrived[i] = 1;
  const std::size_t b = kept.front().bucket_of[i];
  if (b != GradientBuckets::kNone && --buckets()[b].missing == 0) launch(b);
}

void GradientAverage::State::begin_pass(const std::shared_ptr<State>& self) {
  drop_failed();
  open(false);
  const auto token = std::make_shared<Pass>();
  pass = token;
  queue_round(self, token);
}

void GradientAverage::State::queue_round(const std::shared_ptr<State>& self,
                                         const std::shared_ptr<Pass>& token) {
  torch::autograd::Engine::get_default_engine().queue_callback([self, token] {
    if (token->has_ended || self->all.runner == nullptr) return;
    if (self->advance()) {
      self->queue_round(self, token);
    } else {
      token->has_ended = true;
    }
  });
}

/// `in_step`: also with gradients that were assigned to frozen tensors.
void GradientAverage::State::open(bool in_step) {
  if (!failure.empty()) {
    throw std::runtime_error("[Gossip] averaging gradients has failed before: " + failure +
                             "; make a new Gossip on every rank");
  }
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    travels[i] = tensors[i].requires_grad() || (in_step && is_new(i)) ? 1 : 0;
  }
  choose_buckets();
  is_open = true;
  is_dropped = false;
  round = 0;
  pass.reset();
  arrived.assign(tensors.size(), 0);
  for (GradientBucket& bucket : buckets()) bucket.missing = bucket.tensors.size();
}

void GradientAverage::State::choose_buckets() {
  auto chosen = travels;
  for (std::size_t i = 0; i < chosen.size(); ++i) {
    if (sparse[i] != 0) chosen[i] = 0;
  }
  const auto found = std::ranges::find(kept, chosen, &GradientBuckets::chosen);
  if (found != kept.end()) {
    kept.splice(kept.begin(), kept, found);
    return;
  }
  kept.push_front(make_buckets(tensors, chosen, options.bucket_bytes, all, options.codec));
  if (kept.size() > kKeptBuckets) kept.pop_back();
}

/// A pass of which the backward has failed may have sent something: others wait for the rest.
void GradientAverage::State::drop_failed() {
  if (!is_open || is_in_pass()) return;
  is_dropped = true;
  while (advance()) continue;
}

/// Ends the pass under way, or one that has failed, or makes one of what stands in `.grad`.
void GradientAverage::State::finish_now() {
  if (const auto token = pass.lock()) token->has_ended = true;
  if (!is_open) open(true);
  while (advance()) continue;
}

bool GradientAverage::State::advance() {
  const at::NoGradGuard no_grad;
  try {
    if (next_round()) return true;
  } catch (const std::exception& error) {
    is_open = false;
    failure = error.what();
    throw;
  }
  return false;
}

/// Returns whether there is another one. See Note [Several averages in one pass].
bool GradientAverage::State::next_round() {
  switch (round++) {
    case 0:
      launch_all();
      return true;
    case 1: {
      const auto is_there = collect_presence();
      for (std::size_t b = 0; b < buckets().size(); ++b) collect(b, is_there);
      start_rows();
      break;
    }
    case 2:
      rows->launch_values(passes);
      break;
    case 3:
      rows->collect(is_dropped);
      rows.reset();
      break;
  }
  if (rows) return true;
  end_pass();
  return false;
}

void GradientAverage::State::end_pass() {
  is_open = false;
  ++passes;
  exposed_s += overlap.exposed_s();
  hidden_s += overlap.hidden_s();
  overlap = {};
  if (is_dropped) return;
  has_passed = true;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    if (travels[i] == 0) continue;
    means[i] = GradientMark(tensors[i].grad());
    is_mean[i] = 1;
  }
}

// What has been averaged.

/// Whether a gradient stands there that no pass has seen.
bool GradientAverage::State::is_new(std::size_t i) const {
  const at::Tensor& gradient = tensors[i].grad();
  return gradient.defined() && !means[i].is_of(gradient);
}

bool GradientAverage::State::are_averaged() const {
  if (is_open || !has_passed) return false;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const at::Tensor& gradient = tensors[i].grad();
    if (!gradient.defined()) continue;
    const bool is_old = tensors[i].requires_grad()
                            ? is_mean[i] != 0 && means[i].is_in(gradient)
                            : !is_new(i);  // what was left there when it was frozen
    if (!is_old) return false;
  }
  return true;
}

// What travels.

void GradientAverage::State::launch_all() {
  for (std::size_t b = 0; b < buckets().size(); ++b) {
    if (buckets()[b].average.is_under_way()) continue;
    launch(b);
    record(TimelineEvent::Kind::backward, b);
  }
  launch_presence();
}

void GradientAverage::State::launch(std::size_t b) {
  const at::NoGradGuard no_grad;
  GradientBucket& bucket = buckets()[b];
  bucket.average.wait_back();
  for (std::size_t k = 0; k < bucket.tensors.size(); ++k) {
    write(bucket.tensors[k], bucket.views[k]);
  }
  const auto stream = kBucketStream - static_cast<std::int32_t>(b);
  bucket.average.launch(*all.runner, passes, stream, options.recorder);
}

void GradientAverage::State::write(std::size_t i, const at::Tensor& into) const {
  const at::Tensor& gradient = tensors[i].grad();
  if (!gradient.defined() || gradient.layout() == at::kSparse) {
    into.zero_();
  } else if (gradient.layout() == at::kStrided) {
    into.copy_(as_real(gradient.detach()));
  } else {
    fail_argument({.place = kPlace,
                   .what = "the gradient of parameter '" + named[i].name +
                           "' must be dense or sparse by coordinates",
                   .got = c10::str(gradient.layout()),
                   .remedy = "convert it with to_sparse_coo() in a hook"});
  }
}

void GradientAverage::State::launch_presence() {
  GradientSigns own{.is_there = {}, .travels = travels, .is_sparse = {}};
  for (const at::Tensor& tensor : tensors) {
    const bool is_there = tensor.grad().defined();
    own.is_there.push_back(is_there ? 1 : 0);
    own.is_sparse.push_back(is_there && tensor.grad().is_sparse() ? 1 : 0);
  }
  presence->launch(own, steps, passes);
}

void GradientAverage::State::wait_for(FlatAverage& average) {
  const auto begin = Clock::now();
  average.wait();
  overlap.waits.push_back({begin, Clock::now()});
  overlap.journeys.push_back(average.journey());
}

/// By tensor: whether any worker has a gradient.
std::vector<char> GradientAverage::State::collect_presence() {
  wait_for(presence->average());
  const GradientSigns any = presence->collect();
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    if (travels[i] != 0 && any.is_sparse[i] != 0) sparse[i] = 1;
  }
  return any.is_there;
}

/// Brings the mean of a bucket to its gradients.
void GradientAverage::State::collect(std::size_t b, const std::vector<char>& is_there) {
  GradientBucket& bucket = buckets()[b];
  FlatAverage& average = bucket.average;
  wait_for(average);
  record(TimelineEvent::Kind::wait, b);
  if (options.recorder != nullptr) {
    options.recorder->exchanged(static_cast<int>(b), std::span(overlap.journeys).last(1));
  }
  for (std::size_t k = 0; k < bucket.tensors.size() && !is_dropped; ++k) {
    const std::size_t i = bucket.tensors[k];
    if (is_there[i] == 0 || sparse[i] != 0) continue;
    at::Tensor& tensor = tensors[i];
    if (!tensor.grad().defined()) tensor.mutable_grad() = at::empty_like(tensor.detach());
    const at::Tensor& view = bucket.views[k];
    const at::Tensor gradient = as_real(tensor.mutable_grad().detach());
    const bool fits =
        gradient.strides() == view.strides() && gradient.scalar_type() == view.scalar_type();
    const at::Tensor values = fits ? gradient : at::empty_like(view);
    average.read(view.storage_offset(), view.numel(), values.mutable_data_ptr());
    if (fits) {
      torch::autograd::impl::bump_version(tensor.mutable_grad());
    } else {
      gradient.copy_(values);
    }
  }
  average.finish();
  record(TimelineEvent::Kind::update, b);
}

void GradientAverage::State::start_rows() {
  std::vector<at::Tensor> of;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    if (travels[i] != 0 && sparse[i] != 0) of.push_back(tensors[i]);
  }
  if (of.empty()) return;
  rows.emplace(all, std::move(of), options.codec);
  rows->launch_rows(passes);
}

// The owner's side.

void check_averaged_on(const at::Device& device, const std::string& name) {
  if (device.is_cpu()) return;
  fail_argument({.place = kPlace,
                 .what = "pattern=\"allreduce\" averages gradients in CPU memory only",
                 .got = "parameter '" + name + "' on " + device.str(),
                 .remedy = "use DistributedDataParallel over a group of that device, another "
                           "pattern, or model.cpu()"});
}

GradientAverage::GradientAverage(std::vector<AveragedTensor> tensors,
                                 const GradientOptions& options, ExchangeRunner& runner,
                                 HostShape shape, int rank)
    : state_(std::make_shared<State>()) {
  State& state = *state_;
  std::vector<std::string> names;
  for (const AveragedTensor& each : tensors) {
    names.push_back(each.name);
    check_averaged_on(each.tensor.device(), each.name);
    state.tensors.push_back(each.tensor);
  }
  state.named = std::move(tensors);
  state.options = options;
  state.all = {&runner, std::move(shape), rank};
  const std::size_t count = state.tensors.size();
  state.travels.resize(count);
  state.sparse.resize(count);
  state.means.resize(count);
  state.is_mean.resize(count);
  state.presence.emplace(state.all, std::move(names));
  const std::weak_ptr<State> weak = state_;
  state.arrivals.emplace(
      state.tensors,
      [weak](std::size_t i) {
        if (const auto alive = weak.lock()) alive->arrive(i, alive);
      },
      [weak](std::size_t i) {
        if (const auto alive = weak.lock()) alive->is_mean[i] = 0;
      });
}

GradientAverage::~GradientAverage() {
  stop();
  state_->kept.clear();  // what a pass holds lives on without the transport
  state_->presence.reset();
  state_->rows.reset();
}

void GradientAverage::stop() {
  state_->all.runner = nullptr;
  state_->arrivals.reset();
}

void GradientAverage::set_enabled(bool enabled) { state_->enabled = enabled; }

bool GradientAverage::are_averaged() const { return state_->are_averaged(); }

void GradientAverage::average_missed() {
  if (!state_->are_averaged()) state_->finish_now();
}

void GradientAverage::end_step() {
  State& state = *state_;
  ++state.steps;
  state.has_passed = false;
  std::ranges::fill(state.is_mean, 0);
  state.arrivals->watch_new();
}

void GradientAverage::pass_without_backward() { state_->finish_now(); }

std::int64_t GradientAverage::passes() const { return state_->passes; }

double GradientAverage::exposed_s() const { return state_->exposed_s; }

double GradientAverage::hidden_s() const { return state_->hidden_s; }

}  // namespace gossamer
