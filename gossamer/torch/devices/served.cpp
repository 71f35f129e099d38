#include "gossamer/torch/devices/served.h"

#include <algorithm>
#include <string>

namespace gossamer {
namespace {

void check_tensor(const NamedTensor& named, const NamedTensor& first) {
  const at::Tensor& tensor = named.tensor;
  const at::Device device = first.tensor.device();
  if (tensor.device() != device) {
    refuse_tensor(named, "is not on " + device.str() + ", where '" + first.name + "' is",
                  "move all of the model to one device");
  }
  const auto type = tensor.scalar_type();
  const bool is_number = type == at::kFloat || type == at::kDouble;
  if (!is_number || !tensor.is_non_overlapping_and_dense()) {
    refuse_tensor(named, "must be dense and of float32 or float64 to be mixed on a device",
                  "keep parameters in float32 and compute under torch.autocast");
  }
}

}  // namespace

std::optional<c10::Device> device_of(std::span<const NamedTensor> tensors) {
  const auto is_there = [](const NamedTensor& named) { return !named.tensor.device().is_cpu(); };
  const auto first = std::ranges::find_if(tensors, is_there);
  if (first == tensors.end()) return std::nullopt;
  for (const NamedTensor& named : tensors) check_tensor(named, *first);
  return first->tensor.device();
}

bool hides_behind_device(const EngineOptions& options) {
  return (options.pattern == "cwa" || options.pattern == "atc") && options.late == Late::wait;
}

}  // namespace gossamer
