#pragma once
/// How fast a device and pinned memory of the host reach each other.

#include <c10/core/Device.h>

#include "gossamer/base/cluster.h"

namespace gossamer {

struct DeviceLink {
  double out_bytes_per_s = 0;  ///< to the host
  double in_bytes_per_s = 0;
  double latency_s = 0;  ///< of the smallest copy
};

/// The best of a few copies of 64 MiB, and of one byte; waits for the device.
DeviceLink measure_device_link(const c10::Device& device);

/// As a cluster has it: at the rate of the slower way.
LinkSpec link_spec_of(const DeviceLink& link);

}  // namespace gossamer
