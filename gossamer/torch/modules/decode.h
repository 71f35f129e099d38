#pragma once
/// Translations from a trained model: greedy, or with a beam.

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "gossamer/torch/modules/model.h"

namespace gossamer {

struct DecodeOptions {
  /// Hypotheses that are followed at a time; 1: the most probable piece each time (greedy).
  std::int64_t beam = 1;
  /// A translation of n pieces scores log p / n^length_power.
  double length_power = 1;
  /// Pieces of a translation at most, its end included.
  std::int64_t longest = 63;
};

/// The best translation of each source i64 [b, length], without beginning and end. Each step runs
/// the decoder over the whole prefix. Throws std::invalid_argument for a beam below 1 and for
/// models that do not translate.
std::vector<std::vector<std::int64_t>> decode(const Model& model, const at::Tensor& sources,
                                              const DecodeOptions& options);

}  // namespace gossamer
