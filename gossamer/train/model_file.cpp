#include "gossamer/train/model_file.h"

#include <ATen/ATen.h>
#include <torch/nn/module.h>

#include <cstring>
#include <vector>

#include "gossamer/base/errors.h"
#include "gossamer/checkpoint/safetensors.h"
#include "gossamer/torch/tensors/tensor_files.h"

namespace gossamer {
namespace {

/// Calls visit(name, tensor) for all parameters and buffers, shared ones once.
template <class Visit>
void each_tensor(const torch::nn::Module& module, const Visit& visit) {
  for (const auto& item : module.named_parameters()) visit(item.key(), item.value());
  for (const auto& item : module.named_buffers()) visit(item.key(), item.value());
}

}  // namespace

void save_model(const std::filesystem::path& path, const torch::nn::Module& module) {
  std::vector<TensorView> views;
  std::vector<at::Tensor> in_host_memory;
  each_tensor(module, [&](const std::string& name, const at::Tensor& tensor) {
    in_host_memory.push_back(tensor.cpu());
    views.push_back(view_of_tensor(name, in_host_memory.back()));
  });
  write_safetensors(path, views);
}

void load_model(const std::filesystem::path& path, torch::nn::Module& module) {
  const SafetensorsFile file(path);
  each_tensor(module, [&](const std::string& name, const at::Tensor& tensor) {
    const TensorView& saved = file.at(name);
    const TensorView wanted = view_of_tensor(name, tensor);
    if (saved.dtype != wanted.dtype || saved.shape != wanted.shape) {
      fail_io({.place = "model",
               .what = path.string() + " has a tensor '" + name + "' of another size or type",
               .remedy = "use the recipe that the model was trained with"});
    }
    std::memcpy(tensor.mutable_data_ptr(), saved.data.data(), saved.data.size());
  });
}

}  // namespace gossamer
