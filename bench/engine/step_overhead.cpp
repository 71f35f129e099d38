// What a Gossamer step costs beside torch's fused AdamW: 8 workers as threads, free links, no
// forward or backward in between, so that nothing is hidden. Pairs in one run; see
// bench/METRICS.md.
#include <torch/types.h>

#include <algorithm>
#include <array>
#include <barrier>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "gossamer/base/json.h"
#include "gossamer/base/rng.h"
#include "gossamer/engine/engine.h"
#include "gossamer/engine/spares.h"
#include "gossamer/engine/worker_threads.h"
#include "gossamer/graph/topology.h"
#include "gossamer/torch/process.h"
#include "gossamer/transport/threads.h"

namespace {

using namespace gossamer;

constexpr int kHosts = 4;
constexpr int kPerHost = 2;
constexpr int kBuckets = 10;
constexpr Hyper kHyper{.lr = 1e-3, .weight_decay = 0.01};

struct Amount {
  std::int64_t bucket_count = 1 << 20;  ///< elements; 10.5 M parameters
  int steps = 6;
  int rounds = 9;
};
constexpr Amount kQuick{.bucket_count = 1 << 12, .steps = 2, .rounds = 2};

std::vector<at::Tensor> tensors(std::int64_t count, std::uint64_t seed, double scale) {
  std::vector<at::Tensor> all;
  Rng rng(seed);
  for (int b = 0; b < kBuckets; ++b) {
    all.push_back(torch::empty({count}));
    float* data = all.back().data_ptr<float>();
    for (std::int64_t k = 0; k < count; ++k) {
      data[k] = static_cast<float>(scale * (rng.uniform() - 0.5));
    }
  }
  return all;
}

std::vector<at::Tensor> zeros_like_all(const std::vector<at::Tensor>& like) {
  std::vector<at::Tensor> all;
  for (const at::Tensor& tensor : like) all.push_back(torch::zeros_like(tensor));
  return all;
}

/// One worker's contender: parameters, gradients, and a function that steps once.
struct Contender {
  std::vector<at::Tensor> x, g, m, v;
  std::vector<at::Tensor> spares;
  std::vector<at::Tensor> counts;
  std::function<void()> step;
};

void make_torch(Contender& c) {
  c.m = zeros_like_all(c.x);
  c.v = zeros_like_all(c.x);
  for (std::size_t b = 0; b < c.x.size(); ++b) c.counts.push_back(torch::zeros({}));
  c.step = [&c] {
    for (at::Tensor& count : c.counts) count += 1;
    at::_fused_adamw_(c.x, c.g, c.m, c.v, {}, c.counts, kHyper.lr, kHyper.beta1, kHyper.beta2,
                      kHyper.weight_decay, kHyper.eps, false, false);
  };
}

std::unique_ptr<Engine> make_engine(Contender& c, Transport& transport,
                                    const EngineOptions& options) {
  if (wants_spares(options, transport)) c.spares = zeros_like_all(c.x);
  std::vector<Bucket> buckets;
  for (std::size_t b = 0; b < c.x.size(); ++b) {
    const std::int64_t count = c.x[b].numel();
    buckets.push_back({DType::f32, c.x[b].data_ptr(), c.g[b].data_ptr(), count, {{0, count, 0}}});
    if (c.spares.empty()) continue;
    const Owner owner =
        std::make_shared<const std::array<at::Tensor, 2>>(std::array{c.x[b], c.spares[b]});
    buckets.back().x.owner = owner;
    buckets.back().spare = {c.spares[b].data_ptr(), owner};
  }
  auto engine = std::make_unique<Engine>(options, transport, std::move(buckets));
  engine->start();
  c.step = [engine = engine.get(), &c] {
    engine->step();
    if (engine->alternates()) std::swap(c.x, c.spares);
  };
  return engine;
}

/// "alone": nobody mixes, which leaves the optimizer's own pass and the engine around it.
Schedule schedule_of(const std::string& topology, const HostShape& shape) {
  if (topology != "alone") return make_topology(topology, {.shape = shape});
  return alone_schedule(shape);
}

struct Setting {
  std::string topology;
  bool check_gradients = false;
};

double median(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

/// Seconds that all workers need for a round's steps, by round: torch's and Gossamer's in turn.
struct Times {
  std::vector<double> torch_s, gossamer_s;
};

/// One worker alone in its group mixes nothing, so it must step exactly as torch does.
bool answers_agree(std::int64_t count) {
  Contender torch_side{.x = tensors(count, 1, 1), .g = tensors(count, 2, 0.1)};
  Contender own_side{.x = tensors(count, 1, 1), .g = tensors(count, 2, 0.1)};
  make_torch(torch_side);
  auto transports = make_threads_transports({.hosts = {{.workers = 1}}});
  EngineOptions options{.schedule = make_topology("complete", {.shape = even_hosts(1, 1)}),
                        .groups = {kHyper}};
  const auto engine = make_engine(own_side, *transports[0], options);
  for (int k = 0; k < 3; ++k) {
    torch_side.step();
    own_side.step();
  }
  double worst = 0;
  for (std::size_t b = 0; b < own_side.x.size(); ++b) {
    worst = std::max(worst, (own_side.x[b] - torch_side.x[b]).abs().max().item<double>());
  }
  return worst < 1e-6;
}

Times measure(const Setting& setting, const Amount& amount) {
  const std::int64_t count = amount.bucket_count;
  const HostShape shape = even_hosts(kHosts, kPerHost);
  const EngineOptions options{.schedule = schedule_of(setting.topology, shape),
                              .groups = {kHyper},
                              .check_gradients = setting.check_gradients};
  ClusterSpec cluster;
  cluster.hosts.assign(kHosts, {.workers = kPerHost});
  std::barrier everybody(kHosts * kPerHost);
  Times times;
  run_workers(make_threads_transports(cluster), [&](Transport& transport) {
    use_one_torch_thread();
    const int rank = transport.describe().rank;
    const auto seed = static_cast<std::uint64_t>(rank);
    Contender torch_side{.x = tensors(count, seed, 1), .g = tensors(count, seed + 100, 0.1)};
    make_torch(torch_side);
    Contender own_side{.x = tensors(count, seed, 1), .g = tensors(count, seed + 100, 0.1)};
    const auto engine = make_engine(own_side, transport, options);
    const auto run = [&](Contender& side) {
      engine->quiesce();
      everybody.arrive_and_wait();
      const auto begin = Clock::now();
      for (int k = 0; k < amount.steps; ++k) side.step();
      everybody.arrive_and_wait();
      return std::chrono::duration<double>(Clock::now() - begin).count();
    };
    run(torch_side);
    run(own_side);
    for (int round = 0; round < amount.rounds; ++round) {
      const double torch_s = run(torch_side);
      const double own_s = run(own_side);
      if (rank == 0) {
        times.torch_s.push_back(torch_s);
        times.gossamer_s.push_back(own_s);
      }
    }
  });
  return times;
}

}  // namespace

int main(int argc, char** argv) {
  use_one_torch_thread();
  const bool is_quick = argc > 1 && std::string_view(argv[1]) == "--quick";
  const Amount amount = is_quick ? kQuick : Amount();
  if (!answers_agree(amount.bucket_count)) {
    std::fprintf(stderr, "step_overhead: one worker does not step as torch does\n");
    return 1;
  }
  Json rows = Json::array();
  for (const Setting& setting : std::vector<Setting>{{"alone", false},
                                                     {"one_peer_exponential", false},
                                                     {"one_peer_exponential", true},
                                                     {"ring", false},
                                                     {"alternating_exponential_ring", false},
                                                     {"alternating_exponential_ring", true}}) {
    const Times times = measure(setting, amount);
    std::vector<double> ratios;
    for (std::size_t k = 0; k < times.torch_s.size(); ++k) {
      ratios.push_back(times.gossamer_s[k] / times.torch_s[k]);
    }
    const Json row = {{"topology", setting.topology},
                      {"check_gradients", setting.check_gradients},
                      {"workers", kHosts * kPerHost},
                      {"parameters", kBuckets * amount.bucket_count},
                      {"torch_fused_adamw_ms", 1e3 * median(times.torch_s) / amount.steps},
                      {"gossamer_step_ms", 1e3 * median(times.gossamer_s) / amount.steps},
                      {"ratio", median(ratios)},
                      {"ratio_min", *std::ranges::min_element(ratios)},
                      {"ratio_max", *std::ranges::max_element(ratios)}};
    std::fprintf(
        stderr, "%-30s check %d  torch %.1f ms  gossamer %.1f ms  ratio %.2f (%.2f-%.2f)\n",
        setting.topology.c_str(), setting.check_gradients,
        row["torch_fused_adamw_ms"].get<double>(), row["gossamer_step_ms"].get<double>(),
        row["ratio"].get<double>(), row["ratio_min"].get<double>(), row["ratio_max"].get<double>());
    rows.push_back(row);
  }
  std::printf("%s\n", rows.dump(2).c_str());
  return 0;
}
