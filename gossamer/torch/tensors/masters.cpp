#include "gossamer/torch/tensors/masters.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <span>

#include "gossamer/base/name_hash.h"
#include "gossamer/base/rng.h"
#include "gossamer/kernels/random_rounding.h"
#include "gossamer/torch/devices/device_masters.h"
#include "gossamer/torch/tensors/tensor_views.h"

namespace gossamer {
namespace {

constexpr std::size_t kComparedBlock = 2048;  // elements that are left alone where all are equal

/// See Note [Masters].
template <class T>
void take_changed_block(const T* now, T* written, float* values, std::size_t count) {
#pragma GCC ivdep
  for (std::size_t i = 0; i < count; ++i) {
    const float to = static_cast<float>(now[i]);
    const float from = static_cast<float>(written[i]);
    const float change = to - from;
    const float moved = values[i] + change;
    // Not true where one of them is no number.
    const bool is_step = std::fabs(change) <= 0.25F * std::fabs(from);
    values[i] = change == 0 ? values[i] : (is_step ? moved : to);
    written[i] = now[i];
  }
}

template <class T>
void take_changes_of(const at::Tensor& now, Master& master) {
  const auto count = static_cast<std::size_t>(now.numel());
  const T* const from = now.const_data_ptr<T>();
  T* const written = master.written.mutable_data_ptr<T>();
  float* const values = master.values.mutable_data_ptr<float>();
  for (std::size_t begin = 0; begin < count; begin += kComparedBlock) {
    const std::size_t size = std::min(kComparedBlock, count - begin);
    if (std::memcmp(from + begin, written + begin, size * sizeof(T)) == 0) continue;
    take_changed_block(from + begin, written + begin, values + begin, size);
  }
}

/// The tensor itself, or a copy, in the order of the master's elements.
at::Tensor in_order(const at::Tensor& tensor, const Master& master) {
  const bool is_plain = !tensor.key_set().has(c10::DispatchKey::Python) &&
                        tensor.device() == master.values.device() &&
                        tensor.layout() == at::kStrided &&
                        tensor.strides() == master.written.strides();
  return is_plain ? tensor : at::empty_like(master.written).copy_(tensor);
}

}  // namespace

bool wants_master(const at::Tensor& tensor) {
  const auto type = c10::toRealValueType(tensor.scalar_type());
  return type == at::kBFloat16 || type == at::kHalf;
}

Master make_master(const at::Tensor& tensor, const at::Device& device) {
  const bool is_dense = tensor.is_non_overlapping_and_dense();
  const at::TensorOptions low = at::dtype(tensor.scalar_type()).device(device);
  Master master;
  master.written = is_dense ? at::empty_strided(tensor.sizes(), tensor.strides(), low)
                            : at::empty(tensor.sizes(), low);
  const at::IntArrayRef sizes = master.written.sizes();
  const at::IntArrayRef strides = master.written.strides();
  master.values = device.is_cpu()
                      ? large_zeros_like(at::empty_strided(sizes, strides,
                                                           at::dtype(at::kFloat).device(at::kMeta)))
                      : at::empty_strided(sizes, strides, at::dtype(at::kFloat).device(device));
  master.written.copy_(tensor);
  master.values.copy_(tensor);
  return master;
}

void take_changes(const at::Tensor& tensor, Master& master) {
  const at::Tensor now = in_order(tensor, master);
  if (!master.values.is_cpu()) return take_changes_queued(now, master.written, master.values);
  if (now.scalar_type() == at::kHalf) {
    take_changes_of<c10::Half>(now, master);
  } else {
    take_changes_of<c10::BFloat16>(now, master);
  }
}

std::uint64_t rounding_key(std::string_view name, int worker, std::int64_t step) {
  return mix_bits(mix_bits(hash_of_name(name), static_cast<std::uint64_t>(worker)),
                  static_cast<std::uint64_t>(step));
}

void write_at_random(Master& master, const at::Tensor& tensor, std::uint64_t key) {
  if (!master.values.is_cpu()) {
    round_queued(master.values, master.written, key);
    tensor.copy_(master.written);
    return;
  }
  const bool is_half = master.written.scalar_type() == at::kHalf;
  const auto count = static_cast<std::size_t>(master.values.numel());
  // Both types are structs of one unsigned short.
  auto* const codes = static_cast<std::uint16_t*>(master.written.mutable_data_ptr());
  round_at_random(is_half ? HalfFormat::fp16 : HalfFormat::bf16,
                  {master.values.const_data_ptr<float>(), count}, {codes, count}, key);
  tensor.copy_(master.written);
}

}  // namespace gossamer
