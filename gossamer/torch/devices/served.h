#pragma once
/// What is served where parameters are in the memory of a device.

#include <c10/core/Device.h>

#include <optional>
#include <span>

#include "gossamer/engine/options.h"
#include "gossamer/torch/tensors/named_tensor.h"

namespace gossamer {

/// The device that all tensors are on; nothing for CPU memory. Throws std::invalid_argument for
/// several, for tensors that cannot be mixed on one, and for options that are not served there.
std::optional<c10::Device> device_of(std::span<const NamedTensor> tensors,
                                     const EngineOptions& options);

}  // namespace gossamer
