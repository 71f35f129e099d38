#include "gossamer/torch/tensors/tensor_views.h"

#include <ATen/ATen.h>
#include <sys/mman.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <span>

#include "gossamer/torch/tensors/tensor_types.h"

namespace gossamer {
namespace {

constexpr std::size_t kLargePage = std::size_t{2} << 20;
constexpr int kCollapse = 25;  // MADV_COLLAPSE of Linux 6.1, which older headers lack

/// Zeros in large pages, where the system gives them on request; none is touched yet. Apart from
/// malloc's memory, in which holes of this alignment would stay.
at::DataPtr large_zeros(std::size_t bytes) {
  const std::size_t whole = (bytes + kLargePage - 1) / kLargePage * kLargePage;
  constexpr int kProtection = PROT_READ | PROT_WRITE;
  constexpr int kFlags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
  void* const mapped = ::mmap(nullptr, whole + kLargePage, kProtection, kFlags, -1, 0);
  if (mapped == MAP_FAILED) throw std::bad_alloc();
  auto* const first = static_cast<std::byte*>(mapped);
  const std::size_t before =
      (kLargePage - reinterpret_cast<std::uintptr_t>(first) % kLargePage) % kLargePage;
  if (before > 0) ::munmap(first, before);
  std::byte* const memory = first + before;
  ::munmap(memory + whole, kLargePage - before);
  ::madvise(memory, whole, MADV_HUGEPAGE);  // where it is refused, small pages do
  auto* const range = new std::span<std::byte>(memory, whole);
  const auto unmap = [](void* context) {
    const std::unique_ptr<std::span<std::byte>> mine(static_cast<std::span<std::byte>*>(context));
    ::munmap(mine->data(), mine->size());
  };
  return {memory, range, unmap, at::kCPU};
}

at::Tensor zeros(std::size_t bytes, at::IntArrayRef sizes, at::IntArrayRef strides,
                 const at::TensorOptions& options) {
  if (bytes < 2 * kLargePage) return at::empty_strided(sizes, strides, options).zero_();
  // Resizable like that of any other tensor.
  auto storage = c10::make_intrusive<c10::StorageImpl>(
      c10::StorageImpl::use_byte_size_t(), bytes, large_zeros(bytes), c10::GetAllocator(at::kCPU),
      /*resizable=*/true);
  at::Tensor made = at::empty({0}, options);
  made.set_(at::Storage(std::move(storage)), 0, sizes, strides);
  return made;
}

}  // namespace

DType mixing_dtype(const at::Tensor& tensor) {
  const auto type = tensor.scalar_type();
  return type == at::kDouble || type == at::kComplexDouble ? DType::f64 : DType::f32;
}

at::Tensor as_real(const at::Tensor& tensor) {
  return tensor.is_complex() ? at::view_as_real(tensor) : tensor;
}

at::Tensor view_like(const at::Tensor& array, std::int64_t offset, const at::Tensor& like) {
  if (like.is_non_overlapping_and_dense()) {
    return array.as_strided(like.sizes(), like.strides(), offset);
  }
  return array.narrow(0, offset, like.numel()).view(like.sizes());
}

at::Tensor large_zeros_like(const at::Tensor& like) {
  return zeros(like.nbytes(), like.sizes(), like.strides(), at::dtype(like.scalar_type()));
}

void ask_for_large_pages(const at::Tensor& tensor) {
  if (tensor.nbytes() < 2 * kLargePage) return;
  const auto begin = reinterpret_cast<std::uintptr_t>(tensor.const_data_ptr());
  const std::uintptr_t first = (begin + kLargePage - 1) / kLargePage * kLargePage;
  const std::uintptr_t last = (begin + tensor.nbytes()) / kLargePage * kLargePage;
  if (first >= last) return;
  auto* const inside = reinterpret_cast<void*>(first);
  madvise(inside, last - first, MADV_HUGEPAGE);
  madvise(inside, last - first, kCollapse);
}

std::vector<at::Tensor> zero_arrays(const FlatLayout& layout) {
  std::vector<at::Tensor> arrays;
  for (const ArrayLayout& array : layout.arrays) {
    const std::size_t bytes = static_cast<std::size_t>(array.count) * size_of(array.dtype);
    arrays.push_back(zeros(bytes, {array.count}, {1}, at::dtype(to_scalar_type(array.dtype))));
  }
  return arrays;
}

}  // namespace gossamer
