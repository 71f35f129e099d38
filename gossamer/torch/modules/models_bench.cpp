// Forward and backward of one worker's batch, on as many workers as threads; items are samples.
// Compare CPU time: workers on threads of their own should cost what one costs alone.

#include <ATen/ATen.h>
#include <benchmark/benchmark.h>

#include <cmath>

#include "gossamer/torch/modules/residual_cnn.h"
#include "gossamer/torch/modules/transformer.h"
#include "gossamer/torch/process.h"
#include "gossamer/torch/tensors/module_tensors.h"

namespace gossamer {
namespace {

void train_steps(benchmark::State& state, const Model& model, const Batch& batch) {
  const ModuleTensors tensors = tensors_of(*model.module);
  double loss = 0;
  for (auto _ : state) {
    forget_gradients(tensors.trained);
    const at::Tensor result = loss_of(model, batch);
    result.backward();
    loss = result.item<double>();
  }
  if (!std::isfinite(loss) || loss <= 0) state.SkipWithError("the loss is not a positive number");
  state.SetItemsProcessed(state.iterations() * batch.inputs.size(0));
  state.counters["parameters"] = benchmark::Counter(static_cast<double>(parameter_count(model)),
                                                    benchmark::Counter::kAvgThreads);
}

void transformer_step(benchmark::State& state) {
  use_one_torch_thread();
  keep_freed_memory();
  const Model model = make_transformer(
      {.context = state.range(2), .width = state.range(0), .layers = state.range(1)}, 1);
  const at::Tensor text = at::arange(state.range(3) * state.range(2), at::kLong)
                              .square()
                              .remainder(251)
                              .view({state.range(3), state.range(2)});
  train_steps(state, model, {.inputs = text, .targets = text});
}
BENCHMARK(transformer_step)
    ->ArgNames({"width", "layers", "context", "batch"})
    ->Args({64, 2, 64, 4})
    ->Args({128, 4, 64, 4})
    ->Args({128, 4, 64, 8})
    ->Args({192, 2, 64, 4})
    ->ThreadRange(1, 2)
    ->UseRealTime()
    ->Unit(benchmark::kMillisecond);

void residual_cnn_step(benchmark::State& state) {
  use_one_torch_thread();
  keep_freed_memory();
  const Model model = make_residual_cnn({.width = state.range(0)}, 1);
  const std::int64_t count = state.range(1);
  const at::Tensor images = at::arange(count * 28 * 28, at::kFloat).sin().view({count, 1, 28, 28});
  train_steps(state, model, {.inputs = images, .targets = at::arange(count, at::kLong) % 10});
}
BENCHMARK(residual_cnn_step)
    ->ArgNames({"width", "batch"})
    ->Args({8, 16})
    ->Args({16, 16})
    ->ThreadRange(1, 2)
    ->UseRealTime()
    ->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace gossamer
