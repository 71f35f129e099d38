#pragma once
/// DeviceBucket: what an engine asks of a bucket whose parameters are in the memory of a device.

namespace gossamer {

/// Note [Parameters on a device]: the exchange stays in host memory, and the engine never waits for
/// the device. A device works through queues (streams) in order, the host only fills them. Per
/// bucket and round, with y_j for what worker j sent:
///
///   host      c := Σ_j w_ij (y_j − y_i), from what has arrived, where the segments say that the
///             parameters are; needs neither x nor the device
///   in        waits for the last x += c; c goes to the staging buffer s, in the device's memory
///   user's    waits for `in`; x += c; x is copied to s
///   out       waits for that; s goes to the outbox
///   runner    sends the outbox once the copy is over
///
/// The update x ← step(x) + Σ_j w_ij (y_j − y_i) is that of scattered buckets whose optimizer takes
/// its own step (Note [Scattered buckets]), so any optimizer will do and x may be changed at any
/// time. What keeps the order:
///
///   1. An outbox is filled when the exchange before has ended and all peers have given it back.
///   2. `out` waits for the copy to s.
///   3. The runner sends when is_out().
///   4. c is formed when its payloads have arrived, and the last c has left the host's memory: see
///      begin_correction().
///   5. `in` and the user's queue wait for the last copy out before they write s.
///   6. `in` waits for the last x += c, and the user's queue for `in`.
///
/// The host waits for the device only where it would be more than a step ahead of it.
///
/// In steps 4, 5 and the first half of 6 follow from the others: c is formed from the own payload
/// too, so after its outbox has left, which comes after all that the queues were given before. They
/// cost nothing, and hold outside of steps. tests/python/test_gossip_device_order.py leaves out the
/// rest one by one. Done by DeviceStage, gossamer/torch/devices; where nothing hides behind the
/// device, TensorEngine copies in and out.
class DeviceBucket {
 public:
  DeviceBucket() = default;
  virtual ~DeviceBucket() = default;
  DeviceBucket(const DeviceBucket&) = delete;
  DeviceBucket& operator=(const DeviceBucket&) = delete;

  /// Queues x := what stands where the segments say.
  virtual void load() = 0;
  /// c may be written from now on.
  virtual void begin_correction() = 0;
  /// Queues x += c.
  virtual void add_correction() = 0;
  /// Queues a copy of x as it is then; is_out() says when it is in `into`, which is in host memory.
  virtual void copy_out(void* into) = 0;
  /// From any thread; throws what went wrong on the device.
  virtual bool is_out() const = 0;
};

}  // namespace gossamer
