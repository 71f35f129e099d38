#pragma once
/// What torch's backends call streams, and memory that they copy from and to by themselves.

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>
#include <c10/core/Stream.h>

#include <cstdint>

namespace gossamer {

/// The one in which this thread queues work for the device.
c10::Stream current_stream(const c10::Device& device);
/// One beside it.
c10::Stream other_stream(const c10::Device& device);

/// A vector of zeros in pinned memory of the host.
at::Tensor pinned_zeros(std::int64_t count, at::ScalarType type);

}  // namespace gossamer
