#pragma once
/// Moves a module's parameters and gradients into flat arrays, of which they become views.

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "gossamer/base/shared_memory.h"
#include "gossamer/torch/flat_layout.h"
#include "gossamer/transport/transport.h"

namespace torch::nn {
class Module;
}

namespace gossamer {

/// A parameter that is not trained: not in any array, but to be equal on all workers.
struct FrozenParameter {
  std::string name;
  at::Tensor tensor;
};

/// The flat arrays (one per element type, as in `layout.arrays`) and what looks into them.
/// Copies share the memory. The module must not move or replace its parameters afterwards.
struct FlatParameters {
  FlatLayout layout;
  std::vector<at::Tensor> values;
  std::vector<at::Tensor> gradients;
  std::vector<at::Tensor> spares;              ///< as `values`, see add_spares(); empty without
  std::shared_ptr<const SharedMemory> shared;  ///< what both lie in, if they do
  /// The module's own tensors, in the order of `layout.slots`.
  std::vector<at::Tensor> parameters;
  std::vector<FrozenParameter> frozen;
  /// What the caller may want to know, e.g. that a parameter was made contiguous.
  std::vector<std::string> notes;
};

struct FlatOptions {
  LayoutOptions layout;
  /// Names in the order in which a backward pass completes the gradients (completion_order()): the
  /// parameters lie in this order, those that it lacks behind, in reverse order of registration.
  std::vector<std::string> completion = {};
  /// The optimizer group of a parameter; decay_group() when empty.
  std::function<int(const std::string& name, const at::Tensor& parameter)> group_of;
};

/// Group 0: weights with two or more dimensions. Group 1: biases, norms and other vectors, which
/// are usually not decayed.
int decay_group(const std::string& name, const at::Tensor& parameter);

/// Lays the parameters out (see plan_layout), copies their values bit for bit, and makes
/// `parameter` and `parameter.grad` views of the flat arrays; gradients the module had are kept,
/// else they are zero. A tensor reached under several names is laid out once; one that a forward
/// never uses keeps a zero gradient; padding is zero. Throws std::invalid_argument for a parameter
/// that is not a dense f32 or f64 CPU tensor, for two different tensors that share memory, and for
/// a module without trainable ones.
FlatParameters flatten_parameters(torch::nn::Module& module, const FlatOptions& options = {});

/// Sets all gradients to zero in place. Use it instead of Module::zero_grad(), which detaches.
void zero_gradients(FlatParameters& flat);

/// Repairs gradients that someone detached since (zero_grad(), an own tensor in `.grad`): a foreign
/// gradient is copied into its slot, a missing one becomes zero, and `.grad` is a view again.
/// Returns how many it repaired; costs one pointer comparison per parameter when all is well.
/// Throws std::invalid_argument when a parameter itself was moved out of the flat array.
int reattach_gradients(FlatParameters& flat);

/// Adds a second memory for the values, so that buckets have spares (Note [Two memories] of the
/// engine), of the kind that the transport lends; the values move into SharedMemory where that is
/// the kind. To be called before buckets_of(). Throws IoError when the system gives none.
void add_spares(FlatParameters& flat, Lends lends);

/// Exchanges `values` and `spares`, and makes the module's parameters views of what are now the
/// values; for use after a step of an engine that alternates. Views that others took before keep
/// showing the memory they were taken of.
void flip(FlatParameters& flat);

/// The elements of one bucket. Throws std::logic_error when T is not the bucket's element type.
template <class T>
std::span<T> bucket_values(const FlatParameters& flat, int bucket);
template <class T>
std::span<T> bucket_gradients(const FlatParameters& flat, int bucket);

/// The same as bytes, for whoever only moves them.
std::span<std::byte> bucket_value_bytes(const FlatParameters& flat, int bucket);
std::span<std::byte> bucket_gradient_bytes(const FlatParameters& flat, int bucket);

DType bucket_dtype(const FlatParameters& flat, int bucket);

/// All buckets as the engine takes them; they look into the arrays of `flat` and, with spares, keep
/// those of the parameters alive for peers.
std::vector<Bucket> buckets_of(const FlatParameters& flat);

}  // namespace gossamer
