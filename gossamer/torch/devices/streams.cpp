#include "gossamer/torch/devices/streams.h"

#include <ATen/ATen.h>
#include <c10/core/impl/VirtualGuardImpl.h>

namespace gossamer {

c10::Stream current_stream(const c10::Device& device) {
  return c10::impl::VirtualGuardImpl(device.type()).getStream(device);
}

c10::Stream other_stream(const c10::Device& device) {
  return c10::impl::VirtualGuardImpl(device.type()).getStreamFromGlobalPool(device);
}

at::Tensor pinned_zeros(std::int64_t count, at::ScalarType type) {
  return at::zeros({count}, at::dtype(type).device(at::kCPU).pinned_memory(true));
}

}  // namespace gossamer
