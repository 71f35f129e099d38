#pragma once
/// A device of torch's for tests: memory that the host cannot read but through copies, streams,
/// events and pinned memory. See device_queues.h. Python has it as gossamer._test_device; a program
/// gets it, as "testdev", by LD_PRELOAD of the library of preload.cpp.
#include "tests/device/device_queues.h"

namespace test_device {

/// Registers it; once is enough.
void install();

/// What was done since the last call.
Counts take_counts();

}  // namespace test_device
