#include "gossamer/torch/tensors/module_tensors.h"

#include <torch/nn/module.h>

#include <algorithm>
#include <map>
#include <set>
#include <string_view>

#include "gossamer/torch/modules/model.h"
#include "gossamer/torch/tensors/arrivals.h"

namespace gossamer {
namespace {

/// Puts what is completed last first: an engine lays tensors out in reverse order.
void sort_by_completion(std::vector<NamedTensor>& tensors,
                        std::span<const std::string> completion) {
  std::map<std::string_view, std::size_t> place;
  for (const std::string& name : completion) place.emplace(name, place.size());
  const auto place_of = [&](const NamedTensor& named) {
    const auto at = place.find(named.name);
    return at == place.end() ? place.size() : at->second;
  };
  std::ranges::stable_sort(tensors, std::greater<>(), place_of);
}

}  // namespace

int decay_group(const std::string&, const at::Tensor& parameter) {
  return parameter.dim() >= 2 ? 0 : 1;
}

ModuleTensors tensors_of(const torch::nn::Module& module, const ModuleOptions& options) {
  const auto group_of = options.group_of ? options.group_of : decay_group;
  ModuleTensors found;
  std::set<const void*> seen;
  const auto is_new = [&](const at::Tensor& tensor) {
    return seen.insert(tensor.unsafeGetTensorImpl()).second;
  };
  for (const auto& item : module.named_parameters()) {
    const at::Tensor& tensor = item.value();
    if (!is_new(tensor)) continue;
    if (tensor.requires_grad()) {
      found.trained.push_back({item.key(), tensor, group_of(item.key(), tensor)});
    } else {
      found.others.push_back(tensor);
    }
  }
  for (const at::Tensor& buffer : module.buffers()) {
    if (is_new(buffer)) found.others.push_back(buffer);
  }
  sort_by_completion(found.trained, options.completion);
  return found;
}

std::vector<at::Tensor> floating_buffers(const torch::nn::Module& module) {
  std::vector<at::Tensor> found;
  std::set<const void*> seen;
  for (const at::Tensor& buffer : module.buffers()) {
    const bool is_new = seen.insert(buffer.unsafeGetTensorImpl()).second;
    if (is_new && buffer.is_floating_point()) found.push_back(buffer);
  }
  return found;
}

std::vector<std::string> completion_order(const Model& model, const Batch& batch) {
  std::vector<std::string> names;
  std::vector<at::Tensor> tensors;
  for (const NamedTensor& named : tensors_of(*model.module).trained) {
    names.push_back(named.name);
    tensors.push_back(named.tensor);
  }
  std::vector<std::string> order;
  const Arrivals arrivals(std::move(tensors), [&](std::size_t i) { order.push_back(names[i]); });
  loss_of(model, batch).backward();
  return order;
}

void forget_gradients(std::span<const NamedTensor> tensors) {
  for (const NamedTensor& named : tensors) named.tensor.mutable_grad().reset();
}

}  // namespace gossamer
