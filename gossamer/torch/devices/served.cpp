#include "gossamer/torch/devices/served.h"

#include <algorithm>

#include "gossamer/exchange/method.h"
#include "gossamer/torch/tensors/masters.h"

namespace gossamer {

std::optional<c10::Device> device_of(std::span<const NamedTensor> tensors) {
  if (tensors.empty()) return std::nullopt;
  const at::Device device = tensors.front().tensor.device();
  const auto is_there = [&](const NamedTensor& named) { return named.tensor.device() == device; };
  if (device.is_cpu() || !std::ranges::all_of(tensors, is_there)) return std::nullopt;
  return device;
}

DeviceSteps device_steps(std::span<const NamedTensor> tensors, const EngineOptions& options) {
  const DeviceCopies copies = device_copies(find_pattern_facts(options.pattern), options.late);
  if (copies != DeviceCopies::corrections) return DeviceSteps::copied;
  if (is_alone(options.schedule)) return DeviceSteps::none;
  const bool all_fit = std::ranges::all_of(tensors, [](const NamedTensor& named) {
    const auto type = named.tensor.scalar_type();
    return (type == at::kFloat || type == at::kDouble || wants_master(named.tensor)) &&
           !named.tensor.is_complex() && named.tensor.is_non_overlapping_and_dense();
  });
  return all_fit ? DeviceSteps::behind : DeviceSteps::copied;
}

}  // namespace gossamer
