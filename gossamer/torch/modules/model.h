#pragma once
/// What a training loop needs of a model: its module, and the scores it gives for a batch.

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <memory>

namespace torch::nn {
class Module;
}

namespace gossamer {

/// A target that does not count: padding, or a piece that is not asked for.
inline constexpr std::int64_t kIgnoredTarget = -100;
/// The piece that fills short sequences up.
inline constexpr std::int64_t kPadding = 0;

/// Samples with their right answers. Images: `inputs` f32 [b, channels, height, width], `targets`
/// i64 [b]. Sequences of tokens: both i64 [b, length], each target what comes after its input, or
/// what the input hides. Pairs of sequences: `sources` i64 [b, source length] as well.
struct Batch {
  at::Tensor inputs;
  at::Tensor targets;
  at::Tensor sources = {};
  std::uint64_t seed = 0;  ///< of the model's noise in training (dropout)
};

/// A classifier. `logits` maps a batch of b samples to scores [number of targets, classes].
struct Model {
  std::shared_ptr<torch::nn::Module> module;
  std::function<at::Tensor(const Batch&)> logits;
  /// Models that translate only: what their decoder has to know of sources [b, length], and the
  /// logarithms of the next piece's probabilities [b, classes] after `inputs` of the batch.
  std::function<at::Tensor(const at::Tensor& sources)> encode = {};
  std::function<at::Tensor(const Batch& prefixes, const at::Tensor& memory)> next = {};
};

/// The mean cross-entropy over the batch's targets that count, in nats, as a scalar to call
/// backward() on. With `label_smoothing` s a target is 1 − s of its class and s of all equally.
at::Tensor loss_of(const Model& model, const Batch& batch, double label_smoothing = 0);

/// Sums over targets, so that results of several batches and workers add up.
struct Evaluation {
  double loss_sum = 0;
  std::int64_t count = 0;
  std::int64_t correct = 0;

  double mean_loss() const { return count == 0 ? 0 : loss_sum / static_cast<double>(count); }
  double accuracy() const {
    return count == 0 ? 0 : static_cast<double>(correct) / static_cast<double>(count);
  }
  Evaluation& operator+=(const Evaluation& other);
};

/// Loss and hits with the module in evaluation mode and without gradients; the mode is put back.
Evaluation evaluate(const Model& model, const Batch& batch);

/// The number of trainable elements, shared parameters counted once.
std::int64_t parameter_count(const Model& model);

}  // namespace gossamer
