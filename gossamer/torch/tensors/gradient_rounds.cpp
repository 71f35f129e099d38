#include "gossamer/torch/tensors/gradient_rounds.h"

#include <ATen/ATen.h>
#include <torch/csrc/autograd/variable.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "gossamer/base/errors.h"
#include "gossamer/engine/tags.h"
#include "gossamer/torch/devices/streams.h"
#include "gossamer/torch/tensors/tensor_types.h"
#include "gossamer/torch/tensors/tensor_views.h"

namespace gossamer {
namespace {

/// Sets of tensors_ that are trained in turn, as in alternating training, keep their buckets.
constexpr std::size_t kKeptBuckets = 3;

std::vector<std::string> names_of(const std::vector<AveragedTensor>& tensors) {
  std::vector<std::string> names;
  for (const AveragedTensor& each : tensors) names.push_back(each.name);
  return names;
}

}  // namespace

GradientRounds::GradientRounds(const std::vector<AveragedTensor>& tensors,
                               const GradientOptions& options, const Averagers& all)
    : names_(names_of(tensors)),
      options_(options),
      all_(all),
      presence_(all, names_),
      sparse_(tensors.size()) {
  is_new_ = all_.settles != nullptr && all_.settles->has_come_back();
  for (const AveragedTensor& each : tensors) tensors_.push_back(each.tensor);
  if (tensors_.empty() || tensors_.front().is_cpu()) return;
  out_ = other_stream(tensors_.front().device());
}

void GradientRounds::open(std::vector<char> travels, std::size_t step) {
  if (!failure_.empty()) {
    throw std::runtime_error("[Gossip] averaging gradients has failed before: " + failure_ +
                             "; make a new Gossip on every rank");
  }
  if (all_.seated != nullptr) reseat(*all_.seated);
  own_.travels = std::move(travels);
  choose_buckets();
  is_open_ = true;
  is_dropped_ = false;
  round_ = 0;
  if (step != step_) passes_before_ = passes_;
  step_ = step;
  arrived_.assign(tensors_.size(), 0);
  for (GradientBucket& bucket : buckets()) bucket.missing = bucket.tensors.size();
}

void GradientRounds::choose_buckets() {
  auto chosen = own_.travels;
  for (std::size_t i = 0; i < chosen.size(); ++i) {
    if (sparse_[i] != 0) chosen[i] = 0;
  }
  const auto found = std::ranges::find(kept_, chosen, &GradientBuckets::chosen);
  if (found != kept_.end()) {
    kept_.splice(kept_.begin(), kept_, found);
    return;
  }
  kept_.push_front(
      make_buckets(tensors_, chosen, options_.bucket_bytes, all_, options_.codec, out_));
  if (kept_.size() > kKeptBuckets) kept_.pop_back();
}

void GradientRounds::arrive(std::size_t i) {
  if (std::exchange(arrived_[i], 1) != 0) {
    fail_argument(
        {.place = kGossip,
         .what = "a second gradient arrived for parameter '" + names_[i] + "' in one backward pass",
         .got = "shape " + c10::str(tensors_[i].sizes()),
         .remedy = "use non-reentrant checkpointing (use_reentrant=False)"});
  }
  const std::size_t b = kept_.front().bucket_of[i];
  if (b == GradientBuckets::kNone) return;
  if (buckets()[b].stage) buckets()[b].stage->note_stream();
  if (options_.at_end) return;
  if (--buckets()[b].missing == 0) launch(b);
}

bool GradientRounds::next() {
  const at::NoGradGuard no_grad;
  try {
    return do_round();
  } catch (const std::exception& error) {
    is_open_ = false;
    failure_ = error.what();
    throw;
  }
}

void GradientRounds::drop() {
  is_dropped_ = true;
  while (next()) continue;
}

/// Returns whether there is another one. See Note [Several averages in one pass].
bool GradientRounds::do_round() {
  switch (round_++) {
    case 0:
      launch_all();
      return true;
    case 1: {
      if (all_.settles != nullptr) settle();
      const auto is_there = collect_presence();
      for (std::size_t b = 0; b < buckets().size(); ++b) collect(b, is_there);
      start_rows();
      break;
    }
    case 2:
      rows_->launch_values(passes_);
      break;
    case 3:
      rows_->collect(is_dropped_);
      rows_.reset();
      break;
  }
  if (rows_) return true;
  end_pass();
  return false;
}

void GradientRounds::end_pass() {
  is_open_ = false;
  ++passes_;
  exposed_s_ += overlap_.exposed_s();
  hidden_s_ += overlap_.hidden_s();
  overlap_ = {};
}

// What travels.

void GradientRounds::launch_all() {
  for (std::size_t b = 0; b < buckets().size(); ++b) {
    if (buckets()[b].average.is_under_way()) continue;
    launch(b);
    record(TimelineEvent::Kind::backward, b);
  }
  launch_presence();
}

void GradientRounds::launch(std::size_t b) {
  const at::NoGradGuard no_grad;
  GradientBucket& bucket = buckets()[b];
  bucket.average.wait_back();
  bucket.average.launch(*all_.runner,
                        {.pass = number(),
                         .stream = stream::of_gradients(b),
                         .steps_before = steps_before(),
                         .round = round() + (options_.staggers ? static_cast<std::int64_t>(b) : 0),
                         .recorder = options_.recorder},
                        payload_of(bucket));
}

void GradientRounds::wait_until_given(Deadline deadline) {
  for (GradientBucket& bucket : buckets()) bucket.average.wait_until_given(deadline);
  presence_.average().wait_until_given(deadline);
}

PayloadRef GradientRounds::payload_of(GradientBucket& bucket) {
  if (GradientStage* const stage = bucket.stage.get()) {
    std::vector<at::Tensor> gradients;
    for (const std::size_t i : bucket.tensors) {
      check_layout(i);
      gradients.push_back(tensors_[i].grad());
    }
    stage->copy_out(gradients);
    return {.is_ready = [stage] { return stage->is_out(); }};
  }
  if (bucket.average.is_only_coded()) return {.read = reader_of(bucket)};
  for (std::size_t k = 0; k < bucket.tensors.size(); ++k) {
    write(bucket.tensors[k], bucket.views[k]);
  }
  return {};
}

/// The gradient in the order of the tensor's memory; itself, if it has that.
at::Tensor GradientRounds::laid_out(std::size_t i) const {
  const at::Tensor like = as_real(tensors_[i].detach());
  const at::Tensor& gradient = tensors_[i].grad();
  const auto type = to_scalar_type(mixing_dtype(like));
  if (gradient.defined() && gradient.layout() == at::kStrided && gradient.device().is_cpu()) {
    const at::Tensor real = as_real(gradient.detach());
    const bool is_alike = real.scalar_type() == type && real.sizes() == like.sizes() &&
                          real.strides() == like.strides();
    if (is_alike && like.is_non_overlapping_and_dense()) return real;
  }
  at::Tensor made = view_like(at::empty({like.numel()}, at::dtype(type)), 0, like);
  write(i, made);
  return made;
}

/// Of the bucket's elements as its array would have them.
ReadPayload GradientRounds::reader_of(const GradientBucket& bucket) const {
  std::vector<at::Tensor> values;
  std::vector<std::int64_t> begins;
  std::int64_t end = 0;
  for (const std::size_t i : bucket.tensors) {
    values.push_back(laid_out(i));
    begins.push_back(end);
    end += values.back().numel();
  }
  const std::size_t element = size_of(bucket.average.dtype());
  return [=](std::int64_t offset, std::int64_t count, std::byte* into) {
    const auto after = std::ranges::upper_bound(begins, offset) - begins.begin();
    for (auto k = static_cast<std::size_t>(after) - 1; count > 0; ++k) {
      const std::int64_t skipped = offset - begins[k];
      const std::int64_t here = std::min(count, values[k].numel() - skipped);
      const auto* from = static_cast<const std::byte*>(values[k].const_data_ptr());
      std::memcpy(into, from + static_cast<std::size_t>(skipped) * element,
                  static_cast<std::size_t>(here) * element);
      offset += here;
      count -= here;
      into += static_cast<std::size_t>(here) * element;
    }
  };
}

void GradientRounds::check_layout(std::size_t i) const {
  const at::Tensor& gradient = tensors_[i].grad();
  if (!gradient.defined() || gradient.layout() == at::kStrided) return;
  const bool is_by_coordinates = gradient.layout() == at::kSparse;
  if (is_by_coordinates && !out_ && !all_.rounds && all_.settles == nullptr) return;
  std::string place;
  std::string needed = "dense or sparse by coordinates";
  std::string remedy = "convert it with to_sparse_coo() in a hook";
  if (out_) {
    place = " on " + tensors_[i].device().str();
    needed = "dense";
    remedy = "use sparse=False in its layer; sparse gradients are averaged in CPU memory";
  } else if (is_by_coordinates && !all_.rounds) {
    needed = "dense where others go on without a lost worker";
    remedy = "use sparse=False in its layer, or lost=\"error\"";
  } else if (is_by_coordinates) {
    needed = "dense for gossip of gradients";
    remedy = "use sparse=False in its layer, or pattern=\"allreduce\"";
  }
  fail_argument(
      {.place = kGossip,
       .what = "the gradient of parameter '" + names_[i] + "'" + place + " must be " + needed,
       .got = c10::str(gradient.layout()),
       .remedy = remedy});
}

void GradientRounds::write(std::size_t i, const at::Tensor& into) const {
  check_layout(i);
  const at::Tensor& gradient = tensors_[i].grad();
  if (gradient.defined() && gradient.layout() == at::kStrided) {
    into.copy_(as_real(gradient.detach()));
  } else {
    into.zero_();
  }
}

void GradientRounds::launch_presence() {
  own_.is_there.clear();
  own_.is_sparse.clear();
  for (const at::Tensor& tensor : tensors_) {
    const bool is_there = tensor.grad().defined();
    own_.is_there.push_back(is_there ? 1 : 0);
    own_.is_sparse.push_back(is_there && tensor.grad().is_sparse() ? 1 : 0);
  }
  presence_.launch(own_, round(),
                   {.pass = number(), .steps_before = steps_before(), .round = round()});
}

void GradientRounds::wait_for(FlatAverage& average) {
  if (!average.is_under_way()) return;
  const auto begin = Clock::now();
  average.wait();
  overlap_.waits.push_back({begin, Clock::now()});
  overlap_.journeys.push_back(average.journey());
}

/// Of the pass. Where workers may come back they have not made equally many.
std::int64_t GradientRounds::number() const {
  if (all_.lost == nullptr) return passes_;
  return round() * kPassesOfAStep + passes_ - passes_before_;
}

/// All means of the pass, before any of them is used.
void GradientRounds::settle() {
  wait_for(presence_.average());
  for (GradientBucket& bucket : buckets()) wait_for(bucket.average);
  const auto again = [this] {
    Collectives& all = *all_.settles;
    const ReplicaShare share = catch_up(all, all_.seating, is_new_, options_.replica);
    presence_.average().make_again(all, stream::kPresence, share);
    for (std::size_t b = 0; b < buckets().size(); ++b) {
      buckets()[b].average.make_again(all, stream::of_gradients(b), share);
    }
  };
  Seating left = all_.settles->settle(number(), all_.seating, again);
  if (!have_same_ranks(left, all_.seating)) is_new_ = false;
  reseat(std::move(left));
}

void GradientRounds::reseat(Seating among) {
  if (have_same_ranks(among, all_.seating)) return;
  all_.seating = std::move(among);
  presence_.reseat(all_);
  for (GradientBuckets& kept : kept_) {
    for (GradientBucket& bucket : kept.buckets) bucket.average.reseat(all_);
  }
}

/// By tensor: whether any worker has a gradient.
std::vector<char> GradientRounds::collect_presence() {
  wait_for(presence_.average());
  const GradientSigns any = presence_.collect();
  for (std::size_t i = 0; i < tensors_.size(); ++i) {
    if (travels(i) && any.is_sparse[i] != 0) sparse_[i] = 1;
  }
  return any.is_there;
}

/// Brings the mean of a bucket to its gradients.
void GradientRounds::collect(std::size_t b, const std::vector<char>& is_there) {
  GradientBucket& bucket = buckets()[b];
  FlatAverage& average = bucket.average;
  wait_for(average);
  record(TimelineEvent::Kind::wait, b);
  if (options_.recorder != nullptr) {
    const Interval journey = average.journey();
    options_.recorder->exchanged(static_cast<int>(b), std::span(&journey, 1));
  }
  std::vector<char> takes;  // by tensor of the bucket
  for (const std::size_t i : bucket.tensors) {
    takes.push_back(!is_dropped_ && is_there[i] != 0 && sparse_[i] == 0 ? 1 : 0);
  }
  if (bucket.stage) {
    read_to_device(bucket, takes);
  } else {
    for (std::size_t k = 0; k < takes.size(); ++k) {
      if (takes[k] != 0) read(bucket, k);
    }
  }
  average.finish();
  record(TimelineEvent::Kind::update, b);
}

/// Of tensor i; a new one where it has none.
at::Tensor& GradientRounds::gradient_for_mean(std::size_t i) {
  at::Tensor& gradient = tensors_[i].mutable_grad();
  if (!gradient.defined()) gradient = at::empty_like(tensors_[i].detach());
  return gradient;
}

void GradientRounds::read(const GradientBucket& bucket, std::size_t k) {
  at::Tensor& mean = gradient_for_mean(bucket.tensors[k]);
  const at::Tensor& view = bucket.views[k];
  const at::Tensor gradient = as_real(mean.detach());
  const bool fits =
      gradient.strides() == view.strides() && gradient.scalar_type() == view.scalar_type();
  const at::Tensor values = fits ? gradient : at::empty_like(view);
  bucket.average.read(view.storage_offset(), view.numel(), values.mutable_data_ptr());
  if (fits) {
    torch::autograd::impl::bump_version(mean);
  } else {
    gradient.copy_(values);
  }
}

void GradientRounds::read_to_device(GradientBucket& bucket, const std::vector<char>& takes) {
  at::Tensor& means = bucket.stage->means();
  bucket.average.read(0, bucket.average.count(), means.mutable_data_ptr());
  std::vector<at::Tensor> gradients;
  for (std::size_t k = 0; k < takes.size(); ++k) {
    gradients.push_back(takes[k] != 0 ? gradient_for_mean(bucket.tensors[k]) : at::Tensor());
  }
  bucket.stage->copy_in(gradients);
}

void GradientRounds::start_rows() {
  std::vector<at::Tensor> of;
  for (std::size_t i = 0; i < tensors_.size(); ++i) {
    if (travels(i) && sparse_[i] != 0) of.push_back(tensors_[i]);
  }
  if (of.empty()) return;
  rows_.emplace(all_, std::move(of), options_.codec);
  rows_->launch_rows(passes_);
}

}  // namespace gossamer
