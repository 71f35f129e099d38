#pragma once
/// A trainable tensor as the layers above name it.

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>

#include "gossamer/base/errors.h"
#include "gossamer/torch/tensors/tensor_types.h"

namespace gossamer {

/// A trainable tensor, with the index of its parameter group; or one that is mixed beside them in
/// every `beside_every`-th step, and that nobody steps.
struct NamedTensor {
  std::string name;
  at::Tensor tensor;
  int group = 0;
  std::int64_t beside_every = 0;

  bool is_beside() const { return beside_every > 0; }
};

/// Throws std::invalid_argument: "parameter 'NAME' WHAT, got TYPE on DEVICE; REMEDY".
[[noreturn]] inline void refuse_tensor(const NamedTensor& named, const std::string& what,
                                       const std::string& remedy) {
  fail_argument({.place = kGossip,
                 .what = "parameter '" + named.name + "' " + what,
                 .got = named.tensor.toString() + " on " + named.tensor.device().str(),
                 .remedy = remedy});
}

}  // namespace gossamer
