#pragma once
/// What is served how where tensors are in the memory of a device.

#include <c10/core/Device.h>

#include <optional>
#include <span>

#include "gossamer/engine/options.h"
#include "gossamer/torch/tensors/named_tensor.h"

namespace gossamer {

/// The device that all tensors are on; nothing for CPU memory, or for several.
std::optional<c10::Device> device_of(std::span<const NamedTensor> tensors);

/// How a step reaches the parameters.
enum class DeviceSteps {
  behind,  ///< the exchange hides behind the device's work, see Note [Parameters on a device]
  copied,  ///< it waits for the device, works on a copy in host memory, and copies that back: for
           ///< patterns that keep vectors of their own, for neighbours that are skipped, and for
           ///< tensors with gaps or of complex numbers
  none,    ///< nothing is mixed: gradients are averaged, or the worker is alone
};

DeviceSteps device_steps(std::span<const NamedTensor> tensors, const EngineOptions& options);

}  // namespace gossamer
