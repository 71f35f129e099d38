#pragma once
/// The tensors of a module as a TensorEngine takes them.

#include <ATen/core/Tensor.h>

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "gossamer/torch/tensors/tensor_engine.h"

namespace torch::nn {
class Module;
}

namespace gossamer {

struct Model;
struct Batch;

struct ModuleTensors {
  std::vector<NamedTensor> trained;
  std::vector<at::Tensor> others;  ///< frozen parameters and buffers, equal on all workers at first
};

struct ModuleOptions {
  /// Names in the order in which a backward pass completes the gradients (completion_order()): so
  /// the engine's buckets are complete one after the other. Those that it lacks come last.
  std::vector<std::string> completion = {};
  /// The optimizer group of a parameter; decay_group() when empty.
  std::function<int(const std::string& name, const at::Tensor& parameter)> group_of = nullptr;
};

/// Group 0: weights with two or more dimensions. Group 1: biases, norms and other vectors, which
/// are usually not decayed.
int decay_group(const std::string& name, const at::Tensor& parameter);

/// Each tensor once, also one that the module reaches under several names.
ModuleTensors tensors_of(const torch::nn::Module& module, const ModuleOptions& options = {});

/// Floating-point buffers, whose mean over the workers makes sense; each once.
std::vector<at::Tensor> floating_buffers(const torch::nn::Module& module);

/// The names of the parameters in the order in which backward() on this batch completes their
/// gradients; parameters that the loss does not depend on are missing. It is the same on every
/// worker. Costs one forward and backward pass, and leaves gradients and changed buffers in the
/// model: to be asked of one that is thrown away.
std::vector<std::string> completion_order(const Model& model, const Batch& batch);

/// Takes the gradients away, as zero_grad() does in torch.
void forget_gradients(std::span<const NamedTensor> tensors);

}  // namespace gossamer
