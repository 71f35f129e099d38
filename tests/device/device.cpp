#include "tests/device/device.h"

#include <ATen/ATen.h>
#include <ATen/EmptyTensor.h>
#include <ATen/core/GeneratorForPrivateuseone.h>
#include <ATen/detail/PrivateUse1HooksInterface.h>
#include <ATen/native/CPUFallback.h>
#include <ATen/ops/_copy_from_and_resize_native.h>
#include <ATen/ops/_reshape_alias_native.h>
#include <ATen/ops/as_strided_native.h>
#include <ATen/ops/view_as_real_native.h>
#include <ATen/ops/view_native.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <torch/library.h>

#include <atomic>
#include <cstring>
#include <limits>
#include <memory>
#include <set>
#include <utility>

#include "tests/device/device_memory.h"

namespace test_device {
namespace {

thread_local std::int64_t current_stream = 0;

using Lock = std::lock_guard<std::recursive_mutex>;

void copy_now(const at::Tensor& from, const at::Tensor& into) {
  const Open open_from(from);
  const Open open_into(into);
  const at::AutoDispatchBelowADInplaceOrView plain;
  on_cpu(into).copy_(on_cpu(from));
}

/// Pinned memory is the CPU's; it is known by its address.
struct PinnedMemory final : c10::Allocator {
  c10::DataPtr allocate(std::size_t bytes) override {
    c10::DataPtr plain = c10::GetAllocator(c10::kCPU)->allocate(bytes);
    const Lock lock(queues().mutex());
    ranges.insert({plain.get(), bytes});
    allocated += bytes;
    return plain;
  }
  c10::DeleterFnPtr raw_deleter() const override { return nullptr; }
  void copy_data(void* into, const void* from, std::size_t bytes) const override {
    std::memcpy(into, from, bytes);
  }
  std::set<std::pair<void*, std::size_t>> ranges;
  static inline std::atomic<std::size_t> allocated = 0;
};

struct Hooks final : at::PrivateUse1HooksInterface {
  bool isBuilt() const override { return true; }
  bool isAvailable() const override { return true; }
  bool hasPrimaryContext(c10::DeviceIndex) const override { return true; }
  c10::DeviceIndex deviceCount() const override { return 1; }
  void setCurrentDevice(c10::DeviceIndex) const override {}
  c10::DeviceIndex getCurrentDevice() const override { return 0; }
  c10::DeviceIndex exchangeDevice(c10::DeviceIndex) const override { return 0; }
  c10::DeviceIndex maybeExchangeDevice(c10::DeviceIndex) const override { return 0; }
  at::Allocator* getPinnedMemoryAllocator() const override {
    static PinnedMemory* const pinned = new PinnedMemory;
    return pinned;
  }
  bool isPinnedPtr(const void* data) const override {
    const auto& ranges = static_cast<PinnedMemory*>(getPinnedMemoryAllocator())->ranges;
    for (const auto& [begin, bytes] : ranges) {
      const auto* first = static_cast<const char*>(begin);
      if (data >= first && data < first + bytes) return true;
    }
    return false;
  }
  /// As FSDP frees what it has gathered, and allocates it again.
  void resizePrivateUse1Bytes(const c10::Storage& storage, std::size_t bytes) const override {
    const Lock lock(queues().mutex());
    queues().run_everything();
    c10::DataPtr resized = memory().allocate(bytes);
    const std::size_t kept = std::min(bytes, storage.nbytes());
    if (kept > 0) {
      ::mprotect(resized.get(), pages(bytes), PROT_READ | PROT_WRITE);
      ::mprotect(storage.mutable_data(), pages(storage.nbytes()), PROT_READ | PROT_WRITE);
      std::memcpy(resized.get(), storage.data(), kept);
      ::mprotect(resized.get(), pages(bytes), PROT_NONE);
    }
    storage.set_data_ptr_noswap(std::move(resized));
    storage.unsafeGetStorageImpl()->set_nbytes(bytes);
  }
};

struct Guard final : c10::impl::DeviceGuardImplInterface {
  c10::DeviceType type() const override { return kType; }
  c10::Device exchangeDevice(c10::Device) const override { return kDevice; }
  c10::Device getDevice() const override { return kDevice; }
  void setDevice(c10::Device) const override {}
  void uncheckedSetDevice(c10::Device) const noexcept override {}
  c10::DeviceIndex deviceCount() const noexcept override { return 1; }

  static c10::Stream stream(std::int64_t id) {
    return c10::Stream(c10::Stream::UNSAFE, kDevice, id);
  }
  c10::Stream getStream(c10::Device) const override { return stream(current_stream); }
  c10::Stream getDefaultStream(c10::Device) const override { return stream(0); }
  c10::Stream getStreamFromGlobalPool(c10::Device, bool) const override { return next_stream(); }
  c10::Stream getNewStream(c10::Device, int) const override { return next_stream(); }
  static c10::Stream next_stream() {
    const Lock lock(queues().mutex());
    return stream(queues().new_stream());
  }
  c10::Stream exchangeStream(c10::Stream next) const override {
    return stream(std::exchange(current_stream, next.id()));
  }

  static Queues::Event& of(void* event) { return *static_cast<Queues::Event*>(event); }
  void record(void** event, const c10::Stream& stream, const c10::DeviceIndex,
              const c10::EventFlag) const override {
    const Lock lock(queues().mutex());
    queues().begin_call();
    if (*event == nullptr) *event = new Queues::Event;
    of(*event) = queues().record(stream.id());
  }
  void block(void* event, const c10::Stream& stream) const override {
    const Lock lock(queues().mutex());
    queues().begin_call();
    if (event == nullptr || queues().is_left_out(stream.id(), of(event))) return;
    queues().run(of(event).stream, of(event).position);
  }
  bool queryEvent(void* event) const override {
    const Lock lock(queues().mutex());
    queues().begin_call();
    return event == nullptr || queues().query(of(event));
  }
  void synchronizeEvent(void* event) const override {
    const Lock lock(queues().mutex());
    queues().begin_call();
    if (event == nullptr || queues().is_left_out(Queues::kHost, of(event))) return;
    queues().wait(of(event));
  }
  void destroyEvent(void* event, const c10::DeviceIndex) const noexcept override {
    delete static_cast<Queues::Event*>(event);
  }
  bool queryStream(const c10::Stream& stream) const override {
    const Lock lock(queues().mutex());
    queues().run_all(stream.id());
    return true;
  }
  void synchronizeStream(const c10::Stream& stream) const override {
    const Lock lock(queues().mutex());
    queues().run_all(stream.id());
  }
  void synchronizeDevice(const c10::DeviceIndex) const override {
    const Lock lock(queues().mutex());
    queues().run_everything();
  }
};

// Operators.

/// What an operator copies to run on the CPU is no copy of the program's.
thread_local int operators_open = 0;

void fallback(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  {
    const Lock lock(queues().mutex());
    queues().run_all(current_stream);
    queues().run_some();
  }
  ++operators_open;
  try {
    at::native::cpu_fallback(op, stack);
  } catch (...) {
    --operators_open;
    throw;
  }
  --operators_open;
}

at::Tensor empty(c10::IntArrayRef size, std::optional<c10::ScalarType> dtype,
                 std::optional<c10::Layout>, std::optional<c10::Device>, std::optional<bool>,
                 std::optional<c10::MemoryFormat> format) {
  return at::detail::empty_generic(size, &memory(),
                                   c10::DispatchKeySet(c10::DispatchKey::PrivateUse1),
                                   c10::dtype_or_default(dtype), format);
}

at::Tensor empty_strided(c10::IntArrayRef size, c10::IntArrayRef stride,
                         std::optional<c10::ScalarType> dtype, std::optional<c10::Layout>,
                         std::optional<c10::Device>, std::optional<bool>) {
  return at::detail::empty_strided_generic(size, stride, &memory(),
                                           c10::DispatchKeySet(c10::DispatchKey::PrivateUse1),
                                           c10::dtype_or_default(dtype));
}

at::Tensor copy_from(const at::Tensor& from, const at::Tensor& into, bool non_blocking) {
  const Lock lock(queues().mutex());
  queues().begin_call();
  Queues& all = queues();
  const bool is_out = into.device().is_cpu();
  const bool is_in = from.device().is_cpu();
  if (operators_open > 0) {
    all.run_all(current_stream);
    copy_now(from, into);
    return into;
  }
  if (is_out) all.counts.bytes_out += static_cast<std::int64_t>(into.nbytes());
  if (is_in) all.counts.bytes_in += static_cast<std::int64_t>(into.nbytes());
  if (non_blocking && (is_out || is_in)) {
    ++all.counts.late_copies;
    if (is_out && into.is_floating_point()) {
      const at::AutoDispatchBelowADInplaceOrView plain;
      into.fill_(std::numeric_limits<double>::quiet_NaN());  // what is read too early
    }
    all.add(current_stream,
            [from = task_own(from), into = task_own(into)] { copy_now(from, into); });
    return into;
  }
  if (!is_out && !is_in) {
    all.add(current_stream,
            [from = task_own(from), into = task_own(into)] { copy_now(from, into); });
    all.run_some();
    return into;
  }
  all.run_all(current_stream);
  if (is_out || is_in) ++all.counts.blocking_copies;
  copy_now(from, into);
  return into;
}

/// What the fallback calls for results.
at::Tensor copy_from_and_resize(const at::Tensor& from, const at::Tensor& into) {
  if (into.sizes() != from.sizes()) {
    TORCH_CHECK(into.numel() == 0, "the test device resizes empty tensors only");
    at::Tensor room = empty(from.sizes(), from.scalar_type(), {}, {}, {}, {});
    into.unsafeGetTensorImpl()->set_storage_keep_dtype(room.storage());
    into.unsafeGetTensorImpl()->set_sizes_contiguous(from.sizes());
  }
  copy_now(from, into);
  return into;
}

/// Late as copies are, unless a number or a type has to be converted first.
at::Tensor& add_in_place(at::Tensor& self, const at::Tensor& other, const at::Scalar& alpha) {
  const Lock lock(queues().mutex());
  queues().begin_call();
  const auto add = [self = task_own(self), other = task_own(other), alpha] {
    const Open open_self(self);
    const Open open_other(other);
    const at::AutoDispatchBelowADInplaceOrView plain;
    on_cpu(self).add_(on_cpu(other), alpha);
  };
  queues().add(current_stream, add);
  if (other.device().is_cpu()) queues().run_all(current_stream);
  queues().run_some();
  return self;
}

at::Scalar local_scalar_dense(const at::Tensor& self) {
  const Lock lock(queues().mutex());
  ++queues().counts.scalar_reads;
  queues().run_all(current_stream);
  const Open open(self);
  return at::_local_scalar_dense(on_cpu(self));
}

at::Tensor as_strided(const at::Tensor& self, c10::IntArrayRef size, c10::IntArrayRef stride,
                      std::optional<std::int64_t> offset) {
  return at::native::as_strided_tensorimpl(self, size, stride, offset);
}
at::Tensor view(const at::Tensor& self, c10::IntArrayRef size) {
  return at::native::view(self, size);
}
at::Tensor view_as_real(const at::Tensor& self) { return at::native::view_as_real(self); }
at::Tensor reshape_alias(const at::Tensor& self, c10::IntArrayRef size, c10::IntArrayRef stride) {
  return at::native::_reshape_alias(self, size, stride);
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, module) {
  module.impl("empty.memory_format", TORCH_FN(empty));
  module.impl("empty_strided", TORCH_FN(empty_strided));
  module.impl("_copy_from", TORCH_FN(copy_from));
  module.impl("_copy_from_and_resize", TORCH_FN(copy_from_and_resize));
  module.impl("_local_scalar_dense", TORCH_FN(local_scalar_dense));
  module.impl("add_.Tensor", TORCH_FN(add_in_place));
  module.impl("as_strided", TORCH_FN(as_strided));
  module.impl("view", TORCH_FN(view));
  module.impl("view_as_real", TORCH_FN(view_as_real));
  module.impl("_reshape_alias", TORCH_FN(reshape_alias));
}

TORCH_LIBRARY_IMPL(_, PrivateUse1, module) {
  module.fallback(torch::CppFunction::makeFromBoxedFunction<&fallback>());
}

C10_REGISTER_GUARD_IMPL(PrivateUse1, Guard);

}  // namespace

void install() {
  static bool is_there = false;
  if (!std::exchange(is_there, true)) at::RegisterPrivateUse1HooksInterface(new Hooks);
}

Sizes sizes() { return {Memory::in_use, PinnedMemory::allocated}; }

Counts take_counts() {
  const Lock lock(queues().mutex());
  return std::exchange(queues().counts, {});
}

}  // namespace test_device
