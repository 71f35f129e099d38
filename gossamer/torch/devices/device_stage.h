#pragma once
/// DeviceStage: how parameters on a device get to the exchange and its corrections to them. Torch's
/// own streams, events and pinned memory do it, of whatever backend: nothing of CUDA is linked.

#include <ATen/core/Tensor.h>
#include <c10/core/Event.h>
#include <c10/core/Stream.h>

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "gossamer/engine/device_bucket.h"
#include "gossamer/torch/devices/served.h"
#include "gossamer/torch/tensors/flat_layout.h"

namespace gossamer {

/// Host memory that the device reads and writes by itself, until this goes. Where the backend has
/// no function for that, copies to and from it go through memory of the driver's and wait.
class PinnedRange {
 public:
  PinnedRange(const at::Device& device, std::span<std::byte> memory);
  ~PinnedRange();
  PinnedRange(const PinnedRange&) = delete;
  PinnedRange& operator=(const PinnedRange&) = delete;

  bool is_pinned() const { return is_pinned_; }

 private:
  std::span<std::byte> memory_;
  bool is_pinned_ = false;
};

/// See Note [Parameters on a device]. Memory per parameter, in float32: 4 bytes on the device, the
/// staging buffer s, which c comes to as well; 4 bytes pinned, c, beside those of the outboxes.
class DeviceStage {
 public:
  /// Of one rank's layout; on the device that all its parameters are on. Unless steps are `behind`
  /// the device there are arrays on the host only, and no buckets; they are pinned if steps copy.
  DeviceStage(const at::Device& device, const FlatLayout& layout, DeviceSteps steps);
  ~DeviceStage();
  DeviceStage(const DeviceStage&) = delete;
  DeviceStage& operator=(const DeviceStage&) = delete;

  const at::Device& device() const { return device_; }
  /// The host's side of an array of the layout.
  const at::Tensor& host_array(int array) const;
  DeviceBucket* bucket(int bucket) const;
  /// Where the parameters are now, by slot of the layout, and that they are used in the stream
  /// which is the current one of this thread.
  void locate(std::span<const at::Tensor> tensors);
  /// Waits for the stream that was the current one at locate().
  void wait_for_user();
  /// Waits until the device has done what it was given, or has failed.
  void finish() noexcept;

 private:
  struct Streams;
  class StagedBucket;

  const at::Device device_;
  const FlatLayout& layout_;
  std::vector<at::Tensor> host_;    ///< by array
  std::vector<at::Tensor> staged_;  ///< by array, on the device
  std::unique_ptr<Streams> streams_;
  std::vector<std::unique_ptr<StagedBucket>> buckets_;
};

}  // namespace gossamer
