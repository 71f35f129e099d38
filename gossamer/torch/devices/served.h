#pragma once
/// What is served where parameters are in the memory of a device.

#include <c10/core/Device.h>

#include <optional>
#include <span>

#include "gossamer/engine/options.h"
#include "gossamer/torch/tensors/named_tensor.h"

namespace gossamer {

/// The device that all tensors are on; nothing for CPU memory. Throws std::invalid_argument for
/// several, and for tensors that cannot be mixed on one.
std::optional<c10::Device> device_of(std::span<const NamedTensor> tensors);

/// Whether the exchange hides behind the device's work, see Note [Parameters on a device]. Else,
/// for patterns that keep vectors of their own and for neighbours that are skipped, a step waits
/// for the device, works on a copy in host memory, and copies that back.
bool hides_behind_device(const EngineOptions& options);

}  // namespace gossamer
