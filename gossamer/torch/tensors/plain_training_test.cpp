// One worker of Gossamer against plain libtorch training, and the update order of the backward.
#include <gtest/gtest.h>
#include <torch/nn/utils/clip_grad.h>
#include <torch/optim.h>
#include <torch/types.h>

#include <functional>
#include <memory>

#include "gossamer/base/index.h"
#include "gossamer/engine/worker_threads.h"
#include "gossamer/graph/topology.h"
#include "gossamer/torch/modules/transformer.h"
#include "gossamer/torch/process.h"
#include "gossamer/torch/tensors/module_tensors.h"
#include "gossamer/transport/threads.h"

namespace gossamer {
namespace {

Model small_transformer() {
  return make_transformer({.context = 16, .width = 32, .layers = 2, .heads = 2}, 3);
}

Batch byte_batch_of(std::int64_t step) {
  const at::Tensor bytes =
      (torch::arange(4 * 17, torch::kLong).reshape({4, 17}) * (2 * step + 3)).remainder(251);
  return {bytes.slice(1, 0, 16).contiguous(), bytes.slice(1, 1, 17).contiguous()};
}

constexpr std::int64_t kSteps = 100;

/// Trains it for kSteps, each on what `batch_of` gives.
void train(const Model& model, EngineOptions options, Transport& transport,
           const std::function<Batch(std::int64_t)>& batch_of) {
  use_one_torch_thread();
  const std::vector<Hyper> groups = options.groups;
  const bool in_backward = options.update == UpdateAt::backward;
  const ModuleTensors tensors =
      tensors_of(*model.module, {.group_of = [](const auto&, const auto&) { return 0; }});
  TensorEngine engine(tensors.trained, {.engine = std::move(options), .layout = {}}, transport);
  if (in_backward) engine.watch_gradients([&] { return groups; });
  engine.start();
  for (std::int64_t step = 0; step < kSteps; ++step) {
    loss_of(model, batch_of(step)).backward();
    engine.step(groups);
    forget_gradients(tensors.trained);
  }
  engine.engine().collectives().barrier();
}

/// The model after kSteps by one Gossamer worker.
Model train_with_gossamer(EngineOptions options) {
  options.schedule = make_topology("ring", {.shape = even_hosts(1, 1)});
  const Model model = small_transformer();
  const auto transports = make_threads_transports({.hosts = {{.workers = 1}}});
  train(model, std::move(options), *transports[0], byte_batch_of);
  return model;
}

template <class Optimizer, class Options>
Model train_with_torch(const Options& options) {
  use_one_torch_thread();
  Model model = small_transformer();
  Optimizer optimizer(model.module->parameters(), options);
  for (std::int64_t step = 0; step < kSteps; ++step) {
    optimizer.zero_grad();
    loss_of(model, byte_batch_of(step)).backward();
    optimizer.step();
  }
  return model;
}

/// ‖a − b‖ / ‖b‖ over all parameters; exactly 0 only for equal bits.
double relative_difference(const Model& a, const Model& b) {
  const auto left = a.module->parameters();
  const auto right = b.module->parameters();
  double difference = 0;
  double norm = 0;
  for (std::size_t k = 0; k < left.size(); ++k) {
    difference += (left[k] - right[k]).to(torch::kDouble).square().sum().item<double>();
    norm += right[k].to(torch::kDouble).square().sum().item<double>();
  }
  return std::sqrt(difference / norm);
}

TEST(OneWorker, SgdEqualsPlainTrainingBitForBit) {
  for (const UpdateAt update : {UpdateAt::step, UpdateAt::backward}) {
    const Model ours = train_with_gossamer(
        {.optimizer = "sgd", .groups = {{.lr = 0.1, .weight_decay = 1e-3}}, .update = update});
    const Model plain =
        train_with_torch<torch::optim::SGD>(torch::optim::SGDOptions(0.1).weight_decay(1e-3));
    EXPECT_EQ(relative_difference(ours, plain), 0);
  }
}

TEST(OneWorker, MomentumEqualsPlainTrainingBitForBit) {
  for (const bool nesterov : {false, true}) {
    const Model ours = train_with_gossamer(
        {.optimizer = "momentum", .groups = {{.lr = 0.02, .momentum = 0.9, .nesterov = nesterov}}});
    const Model plain = train_with_torch<torch::optim::SGD>(
        torch::optim::SGDOptions(0.02).momentum(0.9).nesterov(nesterov));
    EXPECT_EQ(relative_difference(ours, plain), 0);
  }
}

TEST(OneWorker, AdamEqualsPlainTrainingToOneInAMillion) {
  const Hyper hyper{.lr = 1e-3, .weight_decay = 0.01, .eps = 1e-6};
  const Model adam = train_with_gossamer({.optimizer = "adam", .groups = {hyper}});
  EXPECT_LT(
      relative_difference(adam, train_with_torch<torch::optim::Adam>(
                                    torch::optim::AdamOptions(1e-3).weight_decay(0.01).eps(1e-6))),
      1e-6);
}

TEST(OneWorker, AdamWEqualsPlainTrainingToRounding) {
  const Hyper hyper{.lr = 1e-3, .weight_decay = 0.01, .eps = 1e-6};
  const Model ours = train_with_gossamer({.optimizer = "adamw", .groups = {hyper}});
  const Model plain = train_with_torch<torch::optim::AdamW>(
      torch::optim::AdamWOptions(1e-3).weight_decay(0.01).eps(1e-6));
  EXPECT_LT(relative_difference(ours, plain), 1e-6);
}

TEST(OneWorker, ClippingIsByTheGlobalNorm) {
  const Model ours =
      train_with_gossamer({.optimizer = "sgd", .groups = {{.lr = 0.5}}, .clip_norm = 0.25});
  Model plain = small_transformer();
  for (std::int64_t step = 0; step < kSteps; ++step) {
    plain.module->zero_grad();
    loss_of(plain, byte_batch_of(step)).backward();
    torch::nn::utils::clip_grad_norm_(plain.module->parameters(), 0.25);
    const torch::NoGradGuard no_gradient;
    for (at::Tensor& parameter : plain.module->parameters()) parameter.add_(parameter.grad(), -0.5);
  }
  EXPECT_LT(relative_difference(ours, plain), 1e-5);
}

TEST(ManyWorkers, AllReduceEqualsOneWorkerOnTheWholeBatch) {
  const HostShape shape = even_hosts(2, 2);
  Model whole = train_with_gossamer({.optimizer = "sgd", .groups = {{.lr = 0.1}}});
  std::vector<Model> models(4);
  ClusterSpec cluster{.hosts = {{.workers = 2}, {.workers = 2}}};
  run_workers(make_threads_transports(cluster), [&](Transport& transport) {
    const int rank = transport.describe().rank;
    const Model model = small_transformer();
    train(model,
          {.schedule = make_topology("complete", {.shape = shape}),
           .pattern = "allreduce",
           .optimizer = "sgd",
           .groups = {{.lr = 0.1}},
           .update = UpdateAt::backward},
          transport, [&](std::int64_t step) {
            const Batch all = byte_batch_of(step);
            return Batch{all.inputs.slice(0, rank, rank + 1), all.targets.slice(0, rank, rank + 1)};
          });
    models[at(rank)] = model;
  });
  for (const Model& model : models) {
    EXPECT_EQ(relative_difference(model, models[0]), 0);
    EXPECT_LT(relative_difference(model, whole), 1e-5);
  }
}

}  // namespace
}  // namespace gossamer
