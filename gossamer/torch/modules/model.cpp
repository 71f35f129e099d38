#include "gossamer/torch/modules/model.h"

#include <ATen/ATen.h>
#include <torch/nn/module.h>

#include <set>

namespace gossamer {

at::Tensor loss_of(const Model& model, const Batch& batch, double label_smoothing) {
  return at::cross_entropy_loss(model.logits(batch), batch.targets.view({-1}), /*weight=*/{},
                                at::Reduction::Mean, kIgnoredTarget, label_smoothing);
}

Evaluation& Evaluation::operator+=(const Evaluation& other) {
  loss_sum += other.loss_sum;
  count += other.count;
  correct += other.correct;
  return *this;
}

Evaluation evaluate(const Model& model, const Batch& batch) {
  const at::NoGradGuard no_grad;
  const bool was_training = model.module->is_training();
  model.module->eval();
  const at::Tensor logits = model.logits(batch);
  model.module->train(was_training);
  const at::Tensor targets = batch.targets.view({-1});
  const at::Tensor losses =
      at::cross_entropy_loss(logits, targets, /*weight=*/{}, at::Reduction::None, kIgnoredTarget);
  return {.loss_sum = losses.sum(at::kDouble).item<double>(),
          .count = targets.ne(kIgnoredTarget).sum().item<std::int64_t>(),
          .correct = logits.argmax(1).eq(targets).sum().item<std::int64_t>()};
}

std::int64_t parameter_count(const Model& model) {
  std::set<const void*> seen;
  std::int64_t count = 0;
  for (const at::Tensor& parameter : model.module->parameters()) {
    const bool fresh = seen.insert(parameter.unsafeGetTensorImpl()).second;
    if (fresh && parameter.requires_grad()) count += parameter.numel();
  }
  return count;
}

}  // namespace gossamer
