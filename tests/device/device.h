#pragma once
/// A device of torch's for tests: memory that the host cannot read but through copies, streams,
/// events and pinned memory. See device_queues.h. Python has it as gossamer._test_device; a program
/// gets it, as "testdev", by LD_PRELOAD of the library of preload.cpp.
#include "tests/device/device_queues.h"

namespace test_device {

/// Registers it; once is enough.
void install();

/// Bytes: of the device's memory that are in use, and of pinned memory that were ever asked for.
struct Sizes {
  std::size_t device = 0;
  std::size_t pinned = 0;
};
Sizes sizes();

/// What was done since the last call.
Counts take_counts();

}  // namespace test_device
