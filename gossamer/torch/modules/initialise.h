#pragma once
/// Initial parameter values that are the same on every worker, platform and torch version.

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <string>

namespace torch::nn {
class Module;
}

namespace gossamer {

/// The standard deviation for a parameter with two or more dimensions.
using Spread = std::function<double(const std::string& name, const at::Tensor& parameter)>;

/// Fills every parameter from a generator seeded with `seed` and the parameter's full name, so
/// that neither torch's global generator nor the order of registration matters. Tensors with two
/// or more dimensions become normal with the standard deviation `spread` gives; of the others,
/// names that end in "weight" become 1 (norms) and the rest 0 (biases).
void initialise(torch::nn::Module& module, std::uint64_t seed, const Spread& spread);

/// √(2 / fan-in), He et al. 2015, for layers followed by a ReLU. Fan-in: the first size of a
/// matrix (weights are stored input × output), all but the first of a convolution's.
double he_spread(const std::string& name, const at::Tensor& parameter);

}  // namespace gossamer
