#pragma once
/// For tests: a worker alone.

#include <memory>
#include <utility>
#include <vector>

#include "gossamer/graph/topology.h"
#include "gossamer/torch/tensors/tensor_engine.h"
#include "gossamer/transport/threads.h"

namespace gossamer {

/// SGD with rate 1: what has stepped is less by its gradient.
struct LoneEngine {
  explicit LoneEngine(std::vector<NamedTensor> tensors, UpdateAt update = UpdateAt::step,
                      LayoutOptions layout = {.min_buckets = 1}, bool measures_norm = false)
      : transports(make_threads_transports({.hosts = {HostSpec{}}})),
        groups{Hyper{.lr = 1}},
        engine(std::move(tensors),
               {.engine = {.schedule = make_topology("ring", {.shape = even_hosts(1, 1)}),
                           .optimizer = "sgd",
                           .groups = groups,
                           .update = update},
                .layout = layout,
                .measures_norm = measures_norm},
               *transports.front()) {
    engine.start();
    if (update == UpdateAt::backward) engine.watch_gradients([this] { return groups; });
  }

  std::vector<std::unique_ptr<Transport>> transports;
  std::vector<Hyper> groups;
  TensorEngine engine;
};

}  // namespace gossamer
