#include "gossamer/torch/devices/gradient_stage.h"

#include <ATen/ATen.h>
#include <c10/core/DeviceGuard.h>
#include <c10/core/StreamGuard.h>

#include <algorithm>

#include "gossamer/torch/devices/streams.h"
#include "gossamer/torch/tensors/tensor_views.h"

namespace gossamer {
namespace {

/// Of two lists, by tensor, what belongs to gradients that are there.
struct Copies {
  std::vector<at::Tensor> gradients, places;
};

Copies copies_of(std::span<const at::Tensor> gradients, std::span<const at::Tensor> places) {
  Copies copies;
  for (std::size_t k = 0; k < gradients.size(); ++k) {
    if (!gradients[k].defined()) continue;
    copies.gradients.push_back(gradients[k]);
    copies.places.push_back(places[k]);
  }
  return copies;
}

}  // namespace

GradientStage::GradientStage(const c10::Stream& out, const at::Tensor& flat,
                             std::span<const at::Tensor> views)
    : out_(out),
      flat_(flat),
      means_(pinned_zeros(flat.numel(), flat.scalar_type())),
      staged_(at::zeros(flat.sizes(), flat.options().pinned_memory(false).device(out.device()))),
      written_(out.device_type()),
      left_(out.device_type()),
      used_(out.device_type()) {
  for (const at::Tensor& view : views) {
    places_.push_back(view_like(staged_, view.storage_offset() - flat.storage_offset(), view));
  }
  used_.record(current_stream(out_.device()));  // the zeros
}

GradientStage::~GradientStage() {
  try {
    left_.synchronize();
  } catch (...) {  // it has failed, and does nothing any more
  }
}

void GradientStage::note_stream() {
  const c10::Stream stream = current_stream(out_.device());
  if (std::ranges::find(writers_, stream) == writers_.end()) writers_.push_back(stream);
}

void GradientStage::copy_out(std::span<const at::Tensor> gradients) {
  const c10::DeviceGuard on(out_.device());
  note_stream();
  for (const c10::Stream& writer : writers_) {
    written_.record(writer);
    written_.block(out_);
  }
  writers_.clear();
  used_.block(out_);
  Copies copies = copies_of(gradients, places_);
  const c10::StreamGuard queue(out_);
  if (copies.places.size() < places_.size()) staged_.zero_();
  if (!copies.places.empty()) at::_foreach_copy_(copies.places, copies.gradients);
  flat_.copy_(staged_, /*non_blocking=*/true);
  left_.record(out_);
  gradients_ = std::move(copies.gradients);
}

bool GradientStage::is_out() const { return left_.query(); }

at::Tensor& GradientStage::means() {
  left_.synchronize();  // it is over where the exchange has ended, unless the worker is alone
  gradients_.clear();
  return means_;
}

void GradientStage::copy_in(std::span<const at::Tensor> gradients) {
  const c10::DeviceGuard on(out_.device());
  Copies copies = copies_of(gradients, places_);
  if (copies.places.empty()) return;
  staged_.copy_(means_, /*non_blocking=*/true);
  at::_foreach_copy_(copies.gradients, copies.places);
  used_.record(current_stream(out_.device()));
}

}  // namespace gossamer
