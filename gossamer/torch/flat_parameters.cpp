#include "gossamer/torch/flat_parameters.h"

#include <ATen/ATen.h>
#include <torch/nn/module.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <functional>
#include <map>
#include <string_view>
#include <utility>

#include "gossamer/base/aligned_bytes.h"
#include "gossamer/base/errors.h"
#include "gossamer/torch/tensor_views.h"

namespace gossamer {
namespace {

constexpr const char* kFlatParameters = "flat parameters";

struct Found {
  std::vector<ParameterInfo> infos;
  std::vector<at::Tensor> tensors;
  std::vector<FrozenParameter> frozen;
};

DType checked_dtype(const std::string& name, const at::Tensor& tensor) {
  const bool dense_cpu = tensor.device().is_cpu() && tensor.layout() == at::kStrided;
  if (dense_cpu && tensor.scalar_type() == at::kFloat) return DType::f32;
  if (dense_cpu && tensor.scalar_type() == at::kDouble) return DType::f64;
  fail_argument({.place = kFlatParameters,
                 .what = "parameter '" + name + "' must be a dense float32 or float64 CPU tensor",
                 .got = tensor.toString() + " on " + tensor.device().str(),
                 .remedy = "convert it, or freeze it with requires_grad_(false)"});
}

Found find_parameters(torch::nn::Module& module, const FlatOptions& options) {
  Found found;
  std::map<const void*, std::size_t> index_of;
  const auto group_of = options.group_of ? options.group_of : decay_group;
  for (const auto& item : module.named_parameters()) {
    const at::Tensor& tensor = item.value();
    const void* identity = tensor.unsafeGetTensorImpl();
    const auto known = index_of.find(identity);
    if (!tensor.requires_grad()) {
      if (known == index_of.end()) found.frozen.push_back({item.key(), tensor});
      index_of.emplace(identity, 0);
    } else if (known != index_of.end()) {
      found.infos[known->second].aliases.push_back(item.key());
    } else {
      index_of.emplace(identity, found.infos.size());
      found.infos.push_back({.name = item.key(),
                             .dtype = checked_dtype(item.key(), tensor),
                             .sizes = tensor.sizes().vec(),
                             .group = group_of(item.key(), tensor)});
      found.tensors.push_back(tensor);
    }
  }
  return found;
}

/// The bytes from the first to the last element.
std::pair<const char*, const char*> extent(const at::Tensor& tensor) {
  const auto* begin = static_cast<const char*>(tensor.const_data_ptr());
  if (tensor.numel() == 0) return {begin, begin};
  std::int64_t last = 0;
  for (std::int64_t d = 0; d < tensor.dim(); ++d) last += (tensor.size(d) - 1) * tensor.stride(d);
  return {begin, begin + (last + 1) * static_cast<std::int64_t>(tensor.element_size())};
}

/// Tensors tied through their memory would silently come apart when each gets a slot.
void check_no_shared_memory(const Found& found) {
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < found.tensors.size(); ++i) {
    if (found.tensors[i].numel() > 0) order.push_back(i);
  }
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return extent(found.tensors[a]).first < extent(found.tensors[b]).first;
  });
  for (std::size_t k = 1; k < order.size(); ++k) {
    if (extent(found.tensors[order[k]]).first >= extent(found.tensors[order[k - 1]]).second) {
      continue;
    }
    fail_argument(
        {.place = kFlatParameters,
         .what = "two different parameters share memory",
         .got = "'" + found.infos[order[k - 1]].name + "' and '" + found.infos[order[k]].name + "'",
         .remedy = "register one and the same tensor under both names"});
  }
}

/// Puts what is completed last first, because plan_layout() reverses the order.
void sort_by_completion(std::vector<ParameterInfo>& infos,
                        std::span<const std::string> completion) {
  std::map<std::string_view, std::size_t> place;
  for (const std::string& name : completion) place.emplace(name, place.size());
  const auto place_of = [&](const ParameterInfo& info) {
    const auto at = place.find(info.name);
    return at == place.end() ? place.size() : at->second;
  };
  std::ranges::stable_sort(infos, std::greater<>(), place_of);
}

at::Tensor view_of(const std::vector<at::Tensor>& arrays, const ParameterSlot& slot) {
  return tensor_over(arrays[static_cast<std::size_t>(slot.array)], slot.offset, slot.info.sizes);
}

void move_in(FlatParameters& flat, std::size_t s) {
  const ParameterSlot& slot = flat.layout.slots[s];
  at::Tensor& parameter = flat.parameters[s];
  if (!parameter.is_contiguous()) {
    flat.notes.push_back("parameter '" + slot.info.name + "' was made contiguous");
  }
  const at::Tensor value = view_of(flat.values, slot);
  const at::Tensor gradient = view_of(flat.gradients, slot);
  value.copy_(parameter.detach());
  if (parameter.grad().defined()) gradient.copy_(parameter.grad().detach());
  // The old gradient may have other strides than the new value, which torch would object to.
  parameter.mutable_grad() = at::Tensor();
  parameter.set_data(value);
  parameter.mutable_grad() = gradient;
}

/// Makes the module's parameters views of the values.
void show_values(FlatParameters& flat) {
  for (std::size_t s = 0; s < flat.layout.slots.size(); ++s) {
    flat.parameters[s].set_data(view_of(flat.values, flat.layout.slots[s]));
  }
}

const BucketLayout& bucket_at(const FlatParameters& flat, int bucket) {
  GOSSAMER_ASSERT(bucket >= 0 && bucket < static_cast<int>(flat.layout.buckets.size()));
  return flat.layout.buckets[static_cast<std::size_t>(bucket)];
}

template <class T>
std::span<T> part_of(const std::vector<at::Tensor>& arrays, const FlatParameters& flat,
                     int bucket) {
  const BucketLayout& layout = bucket_at(flat, bucket);
  GOSSAMER_ASSERT(bucket_dtype(flat, bucket) == dtype_of<T>());
  T* data = arrays[static_cast<std::size_t>(layout.array)].mutable_data_ptr<T>();
  return {data + layout.first, static_cast<std::size_t>(layout.count)};
}

std::span<std::byte> bytes_of(const std::vector<at::Tensor>& arrays, const FlatParameters& flat,
                              int bucket) {
  return visit_dtype(bucket_dtype(flat, bucket), [&]<class T>(T) {
    return std::as_writable_bytes(part_of<T>(arrays, flat, bucket));
  });
}

/// What keeps values and spares alive for peers that read them; none without spares.
Owner owner_of(const FlatParameters& flat) {
  if (flat.spares.empty()) return nullptr;
  if (flat.shared) return flat.shared;
  using Memories = std::array<std::vector<at::Tensor>, 2>;
  return std::make_shared<const Memories>(Memories{flat.values, flat.spares});
}

}  // namespace

int decay_group(const std::string&, const at::Tensor& parameter) {
  return parameter.dim() >= 2 ? 0 : 1;
}

FlatParameters flatten_parameters(torch::nn::Module& module, const FlatOptions& options) {
  const at::NoGradGuard no_grad;
  Found found = find_parameters(module, options);
  if (found.infos.empty()) {
    fail_argument({.place = kFlatParameters,
                   .what = "the module has no trainable parameter",
                   .remedy = "set requires_grad on what is to be trained"});
  }
  check_no_shared_memory(found);
  std::map<std::string, at::Tensor> tensor_of;
  for (std::size_t i = 0; i < found.infos.size(); ++i) {
    tensor_of[found.infos[i].name] = found.tensors[i];
  }
  sort_by_completion(found.infos, options.completion);
  FlatParameters flat{.layout = plan_layout(found.infos, options.layout),
                      .values = {},
                      .gradients = {},
                      .spares = {},
                      .shared = nullptr,
                      .parameters = {},
                      .frozen = std::move(found.frozen),
                      .notes = {}};
  flat.values = zero_arrays(flat.layout);
  flat.gradients = zero_arrays(flat.layout);
  for (std::size_t s = 0; s < flat.layout.slots.size(); ++s) {
    flat.parameters.push_back(tensor_of.at(flat.layout.slots[s].info.name));
    move_in(flat, s);
  }
  return flat;
}

void zero_gradients(FlatParameters& flat) {
  reattach_gradients(flat);
  for (at::Tensor& array : flat.gradients) {
    std::memset(array.mutable_data_ptr(), 0, array.nbytes());
  }
}

int reattach_gradients(FlatParameters& flat) {
  int repaired = 0;
  for (std::size_t s = 0; s < flat.layout.slots.size(); ++s) {
    const ParameterSlot& slot = flat.layout.slots[s];
    at::Tensor& parameter = flat.parameters[s];
    const auto array = static_cast<std::size_t>(slot.array);
    const auto offset = static_cast<std::size_t>(slot.offset * parameter.element_size());
    const auto* home = static_cast<const char*>(flat.values[array].const_data_ptr()) + offset;
    if (slot.count > 0 && parameter.const_data_ptr() != home) {
      fail_argument({.place = kFlatParameters,
                     .what = "parameter '" + slot.info.name + "' left the flat array",
                     .remedy = "copy into the parameter instead of replacing its data; convert or "
                               "move the module before it is flattened"});
    }
    const auto* place = static_cast<const char*>(flat.gradients[array].const_data_ptr()) + offset;
    at::Tensor& gradient = parameter.mutable_grad();
    if (gradient.defined() && (slot.count == 0 || gradient.const_data_ptr() == place)) continue;
    const at::NoGradGuard no_grad;
    const at::Tensor view = view_of(flat.gradients, slot);
    if (gradient.defined()) {
      view.copy_(gradient.detach());
    } else {
      view.zero_();
    }
    gradient = view;
    ++repaired;
  }
  return repaired;
}

void add_spares(FlatParameters& flat, Lends lends) {
  std::size_t bytes = 0;
  for (const at::Tensor& array : flat.values) bytes += 2 * aligned(array.nbytes());
  flat.shared = shared_memory_for(lends, bytes);
  if (!flat.shared) {
    flat.spares = zero_arrays(flat.layout);
    return;
  }
  const at::NoGradGuard no_grad;
  std::byte* begin = flat.shared->data();
  const auto next_like = [&](const at::Tensor& array) {
    const at::Tensor made =
        at::from_blob(begin, array.sizes(), [keeps = flat.shared](void*) {}, array.options());
    begin += aligned(array.nbytes());
    return made;
  };
  for (at::Tensor& array : flat.values) {
    flat.spares.push_back(next_like(array));
    array = next_like(array).copy_(array);
  }
  show_values(flat);
}

void flip(FlatParameters& flat) {
  GOSSAMER_ASSERT(!flat.spares.empty());
  const at::NoGradGuard no_grad;
  std::swap(flat.values, flat.spares);
  show_values(flat);
}

template <class T>
std::span<T> bucket_values(const FlatParameters& flat, int bucket) {
  return part_of<T>(flat.values, flat, bucket);
}

template <class T>
std::span<T> bucket_gradients(const FlatParameters& flat, int bucket) {
  return part_of<T>(flat.gradients, flat, bucket);
}

template std::span<float> bucket_values<float>(const FlatParameters&, int);
template std::span<double> bucket_values<double>(const FlatParameters&, int);
template std::span<float> bucket_gradients<float>(const FlatParameters&, int);
template std::span<double> bucket_gradients<double>(const FlatParameters&, int);

std::span<std::byte> bucket_value_bytes(const FlatParameters& flat, int bucket) {
  return bytes_of(flat.values, flat, bucket);
}

std::span<std::byte> bucket_gradient_bytes(const FlatParameters& flat, int bucket) {
  return bytes_of(flat.gradients, flat, bucket);
}

DType bucket_dtype(const FlatParameters& flat, int bucket) {
  return flat.layout.arrays[static_cast<std::size_t>(bucket_at(flat, bucket).array)].dtype;
}

std::vector<Bucket> buckets_of(const FlatParameters& flat) {
  std::vector<Bucket> all;
  const bool spares = !flat.spares.empty();
  const Owner owner = owner_of(flat);
  const auto memory_in = [&](const std::vector<at::Tensor>& arrays, int bucket) {
    return Memory{bytes_of(arrays, flat, bucket).data(), owner};
  };
  for (int b = 0; b < static_cast<int>(flat.layout.buckets.size()); ++b) {
    const BucketLayout& layout = flat.layout.buckets[static_cast<std::size_t>(b)];
    all.push_back({.dtype = bucket_dtype(flat, b),
                   .x = memory_in(flat.values, b),
                   .g = bucket_gradient_bytes(flat, b).data(),
                   .count = layout.count,
                   .segments = layout.segments,
                   .spare = spares ? memory_in(flat.spares, b) : Memory{}});
  }
  return all;
}

}  // namespace gossamer
