#pragma once
/// Workers as threads that probe, for tests.

#include <functional>
#include <mutex>
#include <vector>

#include "gossamer/base/index.h"
#include "gossamer/engine/collectives.h"
#include "gossamer/engine/worker_threads.h"
#include "gossamer/transport/threads.h"

namespace gossamer::probe_case {

/// What `work` returns on each worker of the cluster, whose links are emulated.
template <class Result>
std::vector<Result> on_all(const ClusterSpec& cluster,
                           const std::function<Result(ExchangeRunner&, Collectives&)>& work) {
  const HostShape shape = cluster.shape();
  std::vector<Result> results(static_cast<std::size_t>(shape.workers()));
  std::mutex mutex;
  run_workers(make_threads_transports(cluster, {.emulate_links = true}), [&](Transport& transport) {
    const int rank = transport.describe().rank;
    ExchangeRunner runner(transport, 60);
    Collectives collectives(runner, {shape, rank});
    Result result = work(runner, collectives);
    const std::lock_guard lock(mutex);
    results[at(rank)] = std::move(result);
  });
  return results;
}

}  // namespace gossamer::probe_case
