#include "gossamer/torch/devices/places.h"

#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <dlfcn.h>

#include "gossamer/base/errors.h"

namespace gossamer {
namespace {

c10::Device parsed(const std::string& word) {
  try {
    return c10::Device(word);
  } catch (const c10::Error&) {
    fail_argument({.place = "device",
                   .what = "torch knows no such device",
                   .got = "'" + word + "'",
                   .remedy = "for example cpu, cuda or cuda:1"});
  }
}

/// A program that calls nothing of CUDA's part of torch is linked without it. What it registers
/// when it is loaded is all that is needed.
void load_backend(c10::DeviceType type) {
  if (type != c10::DeviceType::CUDA || c10::impl::hasDeviceGuardImpl(type)) return;
  for (const char* const library : {"libtorch_cuda.so", "libtorch_hip.so"}) {
    if (::dlopen(library, RTLD_NOW | RTLD_GLOBAL) != nullptr) return;
  }
}

}  // namespace

int count_devices(c10::DeviceType type) {
  if (type == c10::DeviceType::CPU) return 1;
  load_backend(type);
  if (!c10::impl::hasDeviceGuardImpl(type)) return 0;
  return c10::impl::VirtualGuardImpl(type).deviceCount();
}

c10::Device device_for(const std::string& word, int local_rank) {
  const c10::Device named = parsed(word);
  if (named.is_cpu()) return named;
  const int count = count_devices(named.type());
  if (count == 0 || named.index() >= count) {
    fail_argument({.place = "device",
                   .what = "'" + word + "' is not here",
                   .got = std::to_string(count) + " devices of that kind",
                   .remedy = count == 0 ? "install a torch that is built for it, or use cpu"
                                        : "use one below that number, or no number"});
  }
  const int index = named.has_index() ? named.index() : local_rank % count;
  return {named.type(), static_cast<c10::DeviceIndex>(index)};
}

}  // namespace gossamer
