#include "gossamer/cli/train_model_file.h"

#include <ATen/ATen.h>
#include <torch/nn/module.h>

#include <cstring>
#include <vector>

#include "gossamer/base/errors.h"
#include "gossamer/engine/safetensors.h"

namespace gossamer {
namespace {

const char* word_of(at::ScalarType type) {
  switch (type) {
    case at::kFloat:
      return "F32";
    case at::kDouble:
      return "F64";
    case at::kLong:
      return "I64";
    default:
      GOSSAMER_ASSERT(false);
      return "";
  }
}

/// Calls visit(name, tensor) for all parameters and buffers, shared ones once.
template <class Visit>
void each_tensor(const torch::nn::Module& module, const Visit& visit) {
  for (const auto& item : module.named_parameters()) visit(item.key(), item.value());
  for (const auto& item : module.named_buffers()) visit(item.key(), item.value());
}

}  // namespace

void save_model(const std::filesystem::path& path, const torch::nn::Module& module) {
  std::vector<TensorView> views;
  each_tensor(module, [&](const std::string& name, const at::Tensor& tensor) {
    GOSSAMER_ASSERT(tensor.is_contiguous());
    views.push_back({name,
                     word_of(tensor.scalar_type()),
                     tensor.sizes().vec(),
                     {static_cast<const std::byte*>(tensor.const_data_ptr()), tensor.nbytes()}});
  });
  write_safetensors(path, views);
}

void load_model(const std::filesystem::path& path, torch::nn::Module& module) {
  const SafetensorsFile file(path);
  each_tensor(module, [&](const std::string& name, const at::Tensor& tensor) {
    const TensorView& saved = file.at(name);
    const bool fits = saved.dtype == word_of(tensor.scalar_type()) &&
                      at::IntArrayRef(saved.shape) == tensor.sizes();
    if (!fits) {
      fail_io({.place = "model",
               .what = path.string() + " has a tensor '" + name + "' of another size or type",
               .remedy = "use the recipe that the model was trained with"});
    }
    std::memcpy(tensor.mutable_data_ptr(), saved.data.data(), saved.data.size());
  });
}

}  // namespace gossamer
