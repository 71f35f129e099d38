#pragma once
/// The memory of the test device.
#include <ATen/ATen.h>
#include <c10/core/Allocator.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <memory>
#include <utility>

namespace test_device {

inline constexpr c10::DeviceType kType = c10::DeviceType::PrivateUse1;
inline const c10::Device kDevice(kType, 0);

inline std::size_t pages(std::size_t bytes) {
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  return (bytes + page - 1) / page * page;
}

/// Memory of the device: nobody on the host may touch it, but while Open is there.
struct Memory final : c10::Allocator {
  c10::DataPtr allocate(std::size_t bytes) override {
    if (bytes == 0) return {nullptr, nullptr, [](void*) {}, kDevice};
    const std::size_t whole = pages(bytes);
    void* const at = ::mmap(nullptr, whole, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    TORCH_CHECK(at != MAP_FAILED, "the test device is out of memory");
    in_use += whole;
    return {at, new std::pair(at, whole), &give_back, kDevice};
  }
  static void give_back(void* context) {
    const std::unique_ptr<std::pair<void*, std::size_t>> mine(
        static_cast<std::pair<void*, std::size_t>*>(context));
    ::munmap(mine->first, mine->second);
    in_use -= mine->second;
  }
  static inline std::atomic<std::size_t> in_use = 0;
  c10::DeleterFnPtr raw_deleter() const override { return &give_back; }
  void copy_data(void* into, const void* from, std::size_t bytes) const override {
    std::memcpy(into, from, bytes);
  }
};

inline Memory& memory() {
  static Memory it;
  return it;
}

struct Open {
  explicit Open(const at::Tensor& tensor) {
    if (tensor.device().type() != kType || tensor.storage().nbytes() == 0) return;
    begin = const_cast<void*>(tensor.storage().data());
    bytes = pages(tensor.storage().nbytes());
    ::mprotect(begin, bytes, PROT_READ | PROT_WRITE);
  }
  ~Open() {
    if (begin != nullptr) ::mprotect(begin, bytes, PROT_NONE);
  }
  Open(const Open&) = delete;
  Open& operator=(const Open&) = delete;
  void* begin = nullptr;
  std::size_t bytes = 0;
};

/// The tensor as one of the CPU over the same memory.
inline at::Tensor on_cpu(const at::Tensor& tensor) {
  if (tensor.device().type() != kType) return tensor;
  return at::from_blob(const_cast<void*>(tensor.const_data_ptr()), tensor.sizes(), tensor.strides(),
                       at::dtype(tensor.scalar_type()));
}

/// The same memory. What Python holds takes Python's lock when it goes, which the thread that waits
/// for the queues may have.
inline at::Tensor task_own(const at::Tensor& tensor) {
  return at::Tensor(tensor.unsafeGetTensorImpl()->shallow_copy_and_detach(
      /*version_counter=*/0, /*allow_tensor_metadata_change=*/false));
}

}  // namespace test_device
