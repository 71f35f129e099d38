#include "gossamer/torch/devices/device_stage.h"

#include <ATen/ATen.h>
#include <c10/core/DeviceGuard.h>
#include <c10/core/StreamGuard.h>
#include <dlfcn.h>

#include <algorithm>
#include <utility>

#include "gossamer/base/index.h"
#include "gossamer/torch/devices/streams.h"
#include "gossamer/torch/tensors/tensor_types.h"

namespace gossamer {
namespace {

// Of the CUDA runtime that torch has loaded; under ROCm torch's device is called cuda, too.
using RegisterHost = int (*)(void*, std::size_t, unsigned);
using UnregisterHost = int (*)(void*);
constexpr unsigned kRegisterPortable = 1;

template <class F>
F find_function(std::initializer_list<const char*> names) {
  for (const char* name : names) {
    if (void* const found = ::dlsym(RTLD_DEFAULT, name)) return reinterpret_cast<F>(found);
  }
  return nullptr;
}

/// All elements of a dense tensor in the order in which they lie in memory.
at::Tensor in_memory_order(const at::Tensor& tensor) {
  return tensor.detach().as_strided({tensor.numel()}, {1});
}

}  // namespace

PinnedRange::PinnedRange(const at::Device& device, std::span<std::byte> memory) : memory_(memory) {
  if (!device.is_cuda() || memory.empty()) return;
  const auto pin = find_function<RegisterHost>({"cudaHostRegister", "hipHostRegister"});
  is_pinned_ = pin != nullptr && pin(memory.data(), memory.size(), kRegisterPortable) == 0;
}

PinnedRange::~PinnedRange() {
  if (!is_pinned_) return;
  const auto unpin = find_function<UnregisterHost>({"cudaHostUnregister", "hipHostUnregister"});
  if (unpin != nullptr) unpin(memory_.data());
}

struct DeviceStage::Streams {
  c10::Stream user;
  c10::Stream in;
  c10::Stream out;
};

class DeviceStage::StagedBucket final : public DeviceBucket {
 public:
  StagedBucket(const Streams& streams, const at::Tensor& host, const at::Tensor& staged)
      : streams_(streams),
        host_(host),
        staged_(staged),
        came_(staged.device().type()),
        used_(staged.device().type()),
        left_(staged.device().type()) {}

  /// A part of a parameter, and where it is staged.
  void clear_parts() {
    parts_.clear();
    places_.clear();
  }
  void add_part(const at::Tensor& part, std::int64_t offset) {
    parts_.push_back(part);
    places_.push_back(staged_.narrow(0, offset, part.numel()));
  }

  void load() override {
    come();
    at::_foreach_copy_(parts_, places_);
    used_.record(streams_.user);
  }

  void begin_correction() override { came_.synchronize(); }

  void add_correction() override {
    come();
    at::_foreach_add_(parts_, places_);
    used_.record(streams_.user);
  }

  void copy_out(void* into) override {
    const c10::DeviceGuard on(staged_.device());
    left_.block(streams_.user);
    at::_foreach_copy_(places_, parts_);
    left_.record(streams_.user);
    left_.block(streams_.out);
    const at::Tensor outbox =
        at::from_blob(into, staged_.sizes(), at::dtype(staged_.scalar_type()));
    const c10::StreamGuard queue(streams_.out);
    outbox.copy_(staged_, /*non_blocking=*/true);
    left_.record(streams_.out);
  }

  bool is_out() const override { return left_.query(); }

 private:
  /// What is in the host's memory comes to the staging buffer, before what the user's stream does
  /// next.
  void come() {
    const c10::DeviceGuard on(staged_.device());
    used_.block(streams_.in);
    left_.block(streams_.in);
    {
      const c10::StreamGuard queue(streams_.in);
      staged_.copy_(host_, /*non_blocking=*/true);
    }
    came_.record(streams_.in);
    came_.block(streams_.user);
  }

  const Streams& streams_;
  at::Tensor host_, staged_;
  std::vector<at::Tensor> parts_, places_;
  c10::Event came_;  ///< what is in s is the host's
  c10::Event used_;  ///< and the parameters have it
  c10::Event left_;  ///< first that s is full, then that it is in the outbox
};

DeviceStage::DeviceStage(const at::Device& device, const FlatLayout& layout, DeviceSteps steps)
    : device_(device), layout_(layout) {
  const c10::DeviceGuard on(device_);
  streams_ = std::make_unique<Streams>(
      Streams{current_stream(device_), other_stream(device_), other_stream(device_)});
  for (const ArrayLayout& array : layout_.arrays) {
    const at::ScalarType type = to_scalar_type(array.dtype);
    host_.push_back(steps == DeviceSteps::none ? at::zeros({array.count}, at::dtype(type))
                                               : pinned_zeros(array.count, type));
  }
  if (steps != DeviceSteps::behind) return;
  for (const at::Tensor& host : host_) {
    staged_.push_back(at::zeros_like(host, host.options().pinned_memory(false).device(device_)));
  }
  for (const BucketLayout& bucket : layout_.buckets) {
    const auto array = at(bucket.array);
    buckets_.push_back(std::make_unique<StagedBucket>(
        *streams_, host_[array].narrow(0, bucket.first, bucket.count),
        staged_[array].narrow(0, bucket.first, bucket.count)));
  }
  streams_->user.synchronize();  // the zeros, before another stream writes there
}

DeviceStage::~DeviceStage() { finish(); }

void DeviceStage::wait_for_user() { streams_->user.synchronize(); }

void DeviceStage::finish() noexcept {
  try {
    for (const c10::Stream& each : {streams_->in, streams_->out, streams_->user}) {
      each.synchronize();
    }
  } catch (...) {  // it has failed, and does nothing any more
  }
}

const at::Tensor& DeviceStage::host_array(int array) const { return host_.at(at(array)); }

DeviceBucket* DeviceStage::bucket(int bucket) const { return buckets_.at(at(bucket)).get(); }

void DeviceStage::locate(std::span<const at::Tensor> tensors) {
  streams_->user = current_stream(device_);
  if (buckets_.empty()) return;
  for (const auto& bucket : buckets_) bucket->clear_parts();
  for (std::size_t s = 0; s < layout_.slots.size(); ++s) {
    const ParameterSlot& slot = layout_.slots[s];
    const at::Tensor all = in_memory_order(tensors[s]);
    for (int b = slot.first_bucket; b <= slot.last_bucket; ++b) {
      const BucketLayout& bucket = layout_.buckets[at(b)];
      const std::int64_t begin = std::max(slot.offset, bucket.first);
      const std::int64_t end = std::min(slot.offset + slot.count, bucket.first + bucket.count);
      if (begin >= end) continue;
      buckets_[at(b)]->add_part(all.narrow(0, begin - slot.offset, end - begin),
                                begin - bucket.first);
    }
  }
}

}  // namespace gossamer
