#pragma once
/// An encoder-decoder, pre-norm transformer that translates one sequence of pieces into another.

#include <cstdint>

#include "gossamer/base/dtype.h"
#include "gossamer/torch/modules/model.h"

namespace gossamer {

struct EncoderDecoderOptions {
  /// Of both languages together: one embedding serves source, target and output.
  std::int64_t vocabulary = 4000;
  /// The longest sequence; shorter ones are fine.
  std::int64_t context = 64;
  std::int64_t width = 128;
  /// Of the encoder, and as many of the decoder.
  std::int64_t layers = 2;
  /// Must divide `width`.
  std::int64_t heads = 4;
  /// Hidden units of the ReLU layers; 0: twice the width.
  std::int64_t hidden = 0;
  /// Of embeddings and residual branches, in training.
  double dropout = 0.1;
  DType dtype = DType::f32;
};

/// Vaswani et al. 2017 with the norms in front of the sublayers and behind the last: embedding
/// N(0, 1/width) times √width plus sinusoids, linear layers with bias and Glorot's deviation.
/// A batch's dropout masks follow from its seed. Equal seeds give equal bits on every worker.
/// Throws std::invalid_argument for sizes that are not positive or heads that do not divide the
/// width.
Model make_encoder_decoder(const EncoderDecoderOptions& options, std::uint64_t seed);

}  // namespace gossamer
