#pragma once
/// A pre-norm transformer over tokens: causal, it predicts the next one (GPT); else it sees both
/// sides of those that are hidden (BERT).

#include <cstdint>

#include "gossamer/base/dtype.h"
#include "gossamer/torch/modules/model.h"

namespace gossamer {

enum class Positions { learned, sinusoidal };

struct TransformerOptions {
  /// Different inputs, and as many scores.
  std::int64_t vocabulary = 256;
  /// The longest sequence; shorter ones are fine.
  std::int64_t context = 64;
  std::int64_t width = 128;
  std::int64_t layers = 4;
  /// Must divide `width`.
  std::int64_t heads = 4;
  /// Hidden units of the MLP per unit of width.
  std::int64_t mlp_factor = 4;
  Positions positions = Positions::learned;
  /// Whether the output layer is the embedding transposed.
  bool tied_embedding = true;
  /// Whether a token sees only itself and those before it.
  bool is_causal = true;
  /// Of embeddings and residual branches, in training.
  double dropout = 0;
  DType dtype = DType::f32;
};

/// Linear layers have no bias; norms have scale and shift. Weights start normal with deviation
/// 0.02, those that write to the residual stream with 0.02/√(2·layers) (Radford et al. 2019).
/// A batch's dropout masks follow from its seed. Equal seeds give equal bits on every worker.
/// Throws std::invalid_argument for sizes that are not positive or heads that do not divide the
/// width.
Model make_transformer(const TransformerOptions& options, std::uint64_t seed);

}  // namespace gossamer
