// One worker of Gossamer against plain libtorch training, and the update order of the backward.
#include <gtest/gtest.h>
#include <torch/nn/utils/clip_grad.h>
#include <torch/optim.h>
#include <torch/types.h>

#include <functional>
#include <memory>

#include "gossamer/engine/engine.h"
#include "gossamer/engine/worker_threads.h"
#include "gossamer/graph/topology.h"
#include "gossamer/torch/flat_parameters.h"
#include "gossamer/torch/gradient_watch.h"
#include "gossamer/torch/models/transformer.h"
#include "gossamer/torch/process.h"
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

/// The model after kSteps by one Gossamer worker.
Model train_with_gossamer(EngineOptions options) {
  use_one_torch_thread();
  options.schedule = make_topology("ring", {.shape = even_hosts(1, 1)});
  Model model = small_transformer();
  FlatParameters flat =
      flatten_parameters(*model.module, {.group_of = [](const auto&, const auto&) { return 0; }});
  auto transports = make_threads_transports({.hosts = {{.workers = 1}}});
  Engine engine(std::move(options), *transports[0], buckets_of(flat));
  GradientWatch watch(flat, [&](int bucket) { engine.gradient_ready(bucket); });
  engine.start();
  for (std::int64_t step = 0; step < kSteps; ++step) {
    watch.begin_backward();
    loss_of(model, byte_batch_of(step)).backward();
    watch.finish_backward();
    engine.step();
    zero_gradients(flat);
  }
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
    use_one_torch_thread();
    const int rank = transport.describe().rank;
    Model model = small_transformer();
    FlatParameters flat =
        flatten_parameters(*model.module, {.group_of = [](const auto&, const auto&) { return 0; }});
    Engine engine({.schedule = make_topology("complete", {.shape = shape}),
                   .pattern = "allreduce",
                   .optimizer = "sgd",
                   .groups = {{.lr = 0.1}},
                   .update = UpdateAt::backward},
                  transport, buckets_of(flat));
    GradientWatch watch(flat, [&](int bucket) { engine.gradient_ready(bucket); });
    engine.start();
    for (std::int64_t step = 0; step < kSteps; ++step) {
      const Batch all = byte_batch_of(step);
      const Batch own{all.inputs.slice(0, rank, rank + 1), all.targets.slice(0, rank, rank + 1)};
      watch.begin_backward();
      loss_of(model, own).backward();
      watch.finish_backward();
      engine.step();
      zero_gradients(flat);
    }
    engine.collectives().barrier();
    models[static_cast<std::size_t>(rank)] = model;
  });
  for (const Model& model : models) {
    EXPECT_EQ(relative_difference(model, models[0]), 0);
    EXPECT_LT(relative_difference(model, whole), 1e-5);
  }
}

}  // namespace
}  // namespace gossamer
