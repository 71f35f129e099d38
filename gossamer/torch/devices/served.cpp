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

std::optional<c10::Device> device_of(std::span<const NamedTensor> tensors,
                                     const EngineOptions& options) {
  const auto is_there = [](const NamedTensor& named) { return !named.tensor.device().is_cpu(); };
  const auto first = std::ranges::find_if(tensors, is_there);
  if (first == tensors.end()) return std::nullopt;
  for (const NamedTensor& named : tensors) check_tensor(named, *first);
  const bool has_pattern = options.pattern == "cwa" || options.pattern == "atc";
  if (!has_pattern || options.late != Late::wait) {
    const std::string what = has_pattern ? "late=\"skip\"" : "pattern=\"" + options.pattern + "\"";
    refuse_tensor(*first, "is on a device, where " + what + " is not served",
                  "use pattern=\"cwa\" or \"atc\" and late=\"wait\", or a model in CPU memory");
  }
  return first->tensor.device();
}

}  // namespace gossamer
