#pragma once
/// What averages of gradients are told.

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>

#include "gossamer/base/codec.h"
#include "gossamer/engine/recorder.h"

namespace gossamer {

/// A leaf, with the name that messages call it by.
struct AveragedTensor {
  std::string name;
  at::Tensor tensor;
};

struct GradientOptions {
  std::int64_t bucket_bytes = std::int64_t{4} << 20;  ///< unless one tensor is larger
  Codec codec = Codec::fp32;     ///< of what crosses hosts; what it leaves out is lost
  Recorder* recorder = nullptr;  ///< is told of exchanges and waits; null: nobody is
  /// Gradients may change until the pass ends, as DistributedDataParallel changes them: none leaves
  /// before that has been done.
  bool at_end = false;
};

}  // namespace gossamer
