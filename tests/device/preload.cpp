// For LD_PRELOAD: a program of libtorch finds the test device as "testdev".
#include <c10/core/DeviceType.h>

#include <cstdlib>
#include <mutex>

#include "tests/device/device.h"

namespace test_device {
namespace {

[[gnu::constructor]] void add_device() {
  c10::register_privateuse1_backend("testdev");
  install();
  const char* const seed = std::getenv("TESTDEV_SEED");
  const std::lock_guard lock(queues().mutex());
  queues().seed(seed == nullptr ? 1 : std::strtoull(seed, nullptr, 10));
}

}  // namespace
}  // namespace test_device
