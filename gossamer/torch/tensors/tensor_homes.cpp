// What a TensorEngine mixes of each tensor, and what its owner sees of that.

#include <ATen/ATen.h>
#include <torch/csrc/autograd/variable.h>

#include "gossamer/exchange/pattern_facts.h"
#include "gossamer/torch/tensors/tensor_engine.h"
#include "gossamer/torch/tensors/tensor_views.h"

namespace gossamer {

at::Tensor TensorEngine::home_of(std::size_t i) const {
  return places_[i].is_home ? tensors_[i].tensor.detach() : places_[i].home;
}

at::Tensor TensorEngine::home(int tensor) {
  const at::NoGradGuard no_grad;
  const std::size_t i = at(tensor);
  const at::Tensor& now = tensors_.at(i).tensor;
  if (!places_[i].has_master()) return stage_ ? as_real(now.detach()) : home_of(i);
  if (!is_averaged_ && is_as_made(i, now)) take_changes(as_real(now.detach()), places_[i].master);
  return places_[i].master.values;
}

void TensorEngine::set_home(int tensor, const at::Tensor& values) {
  const at::NoGradGuard no_grad;
  const std::size_t i = at(tensor);
  Place& place = places_.at(i);
  if (!place.has_master()) {
    home_of(i).copy_(values);
    return;
  }
  place.master.values.copy_(values);
  place.master.written.copy_(as_real(tensors_[i].tensor.detach()));
}

/// Workers draw apart, so that their mean is rounded less than each. Where all have the same
/// parameters they draw alike, and keep them the same.
std::uint64_t TensorEngine::rounding_key_of(std::size_t i) {
  const EngineOptions& options = options_.engine;
  const bool is_alike =
      is_alone(options.schedule) || averages_gradients(find_pattern_facts(options.pattern));
  const int worker = is_alike ? 0 : engine_.collectives().rank();
  return rounding_key(tensors_[i].name, worker, engine_.steps_done());
}

void TensorEngine::take_all_changes() {
  for (std::size_t i = 0; i < tensors_.size(); ++i) {
    if (places_[i].has_master()) {
      take_changes(as_real(tensors_[i].tensor.detach()), places_[i].master);
    }
  }
}

void TensorEngine::copy_in() {
  take_all_changes();
  for (std::size_t i = 0; i < tensors_.size(); ++i) {
    const Place& place = places_[i];
    if (place.is_home || (place.has_master() && !is_behind())) continue;
    const at::Tensor values =
        place.has_master() ? place.master.values : as_real(tensors_[i].tensor.detach());
    place.home.copy_(values, /*non_blocking=*/stage_ != nullptr);
  }
  if (stage_) stage_->wait_for_user();
}

void TensorEngine::write_master(std::size_t i) {
  write_at_random(places_[i].master, as_real(tensors_[i].tensor.detach()), rounding_key_of(i));
}

void TensorEngine::write_masters() {
  for (std::size_t i = 0; i < tensors_.size(); ++i) {
    if (places_[i].has_master()) write_master(i);
  }
}

/// Also tells autograd that the values have changed.
void TensorEngine::copy_out(Shown shown) {
  const at::NoGradGuard no_grad;
  for (std::size_t i = 0; i < tensors_.size(); ++i) {
    Place& place = places_[i];
    if (place.is_home) {
      torch::autograd::impl::bump_version(tensors_[i].tensor);
      continue;
    }
    const at::Tensor values = as_real(tensors_[i].tensor.detach());
    if (!place.has_master() || shown == Shown::averaged) {
      values.copy_(place.home);
    } else if (shown == Shown::local) {
      values.copy_(place.master.written);
    } else {
      if (is_behind()) place.master.values.copy_(place.home);
      write_master(i);
    }
  }
}

double TensorEngine::load_average() {
  refuse_in_step("averaging");
  const at::NoGradGuard no_grad;
  engine_.quiesce();  // nothing may travel while it changes
  locate();           // also the stream that copy_in() waits for
  copy_in();
  const double disagreement = engine_.load_average();
  is_averaged_ = true;
  copy_out(Shown::averaged);
  return disagreement;
}

void TensorEngine::restore_local() {
  locate();
  engine_.restore_local();
  is_averaged_ = false;
  copy_out(Shown::local);
}

}  // namespace gossamer
