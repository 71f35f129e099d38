// Parameters that peers of one host read in place, while those of other hosts get them over TCP.
#include <gtest/gtest.h>
#include <torch/nn/module.h>

#include <barrier>
#include <set>
#include <thread>

#include "gossamer/engine/engine.h"
#include "gossamer/engine/worker_threads.h"
#include "gossamer/graph/topology.h"
#include "gossamer/torch/flat_parameters.h"
#include "gossamer/transport/net/net_transport.h"
#include "gossamer/transport/threads.h"

namespace gossamer {
namespace {

constexpr const char* kLoopback = "127.0.0.1";
using Transports = std::vector<std::unique_ptr<Transport>>;

struct Two : torch::nn::Module {
  Two() {
    w = register_parameter("w", at::arange(3000.0).to(at::kFloat).view({30, 100}) / 3000);
    v = register_parameter("v", at::arange(70.0, at::kDouble));
  }
  at::Tensor w, v;
};

/// `shares[rank]`: whether the worker is on the one host where memory is shared; every other one is
/// alone on its own.
Transports net_team(const std::vector<bool>& shares) {
  std::vector<std::string> words(shares.size());
  Transports team(shares.size());
  std::barrier all_here(std::ssize(shares));
  std::vector<std::jthread> threads;
  for (std::size_t rank = 0; rank < shares.size(); ++rank) {
    threads.emplace_back([&, rank] {
      team[rank] = make_net_transport({.rank = static_cast<int>(rank),
                                       .workers = static_cast<int>(shares.size()),
                                       .token = "sesame",
                                       .share =
                                           [&, rank](const std::string& own) {
                                             words[rank] = own;
                                             all_here.arrive_and_wait();
                                             return words;
                                           },
                                       .address = kLoopback,
                                       .share_memory = shares[rank]});
    });
  }
  threads.clear();  // joins
  return team;
}

Transports thread_team(const HostShape& shape) {
  ClusterSpec cluster;
  for (const int workers : shape.workers_per_host) cluster.hosts.push_back({.workers = workers});
  return make_threads_transports(cluster);
}

struct Case {
  HostShape shape;
  std::vector<bool> shares;
  const char* topology = "ring";
};

/// All workers' parameters after some steps with gradients that depend on them; an evaluation of
/// the mean comes in between, for which everything under way must be brought home.
std::vector<std::vector<at::Tensor>> train(const Case& c, Transports transports,
                                           std::set<int>& alternating) {
  std::vector<std::vector<at::Tensor>> result(c.shares.size());
  std::mutex mutex;
  run_workers(std::move(transports), [&](Transport& transport) {
    const TransportInfo info = transport.describe();
    Two module;
    FlatParameters flat = flatten_parameters(module, {.layout = {.min_buckets = 3}});
    EngineOptions options{.schedule = make_topology(c.topology, {.shape = c.shape}),
                          .groups = {Hyper{.lr = 0.05}, Hyper{.lr = 0.01}}};
    if (wants_spares(options, transport)) add_spares(flat, info.lends);
    Engine engine(std::move(options), transport, buckets_of(flat));
    engine.start();
    for (int step = 0; step < 6; ++step) {
      if (step == 3) {
        engine.load_average();
        engine.restore_local();
      }
      ((module.w * (1 + info.rank)).sin().sum() + (module.v - info.rank).square().sum()).backward();
      engine.step();
      if (engine.alternates()) flip(flat);
      zero_gradients(flat);
    }
    engine.quiesce();
    engine.collectives().barrier();
    const std::lock_guard lock(mutex);
    if (engine.alternates()) alternating.insert(info.rank);
    for (const at::Tensor& value : flat.values) {
      result[static_cast<std::size_t>(info.rank)].push_back(value.clone());
    }
  });
  return result;
}

TEST(SharedParameters, GiveTheBitsOfThreads) {
  const Case cases[] = {
      {.shape = {{4}}, .shares = {true, true, true, true}},
      {.shape = {{2, 1, 1}}, .shares = {true, true, false, false}},
      {.shape = {{3, 1}}, .shares = {true, true, true, false}, .topology = "aer"},
      {.shape = {{1, 1}}, .shares = {false, false}, .topology = "complete"},
  };
  for (const Case& c : cases) {
    std::set<int> all;
    const auto expected = train(c, thread_team(c.shape), all);
    EXPECT_EQ(std::ssize(all), std::ssize(c.shares));
    std::set<int> alternating;
    const auto found = train(c, net_team(c.shares), alternating);
    for (std::size_t rank = 0; rank < found.size(); ++rank) {
      EXPECT_EQ(alternating.contains(static_cast<int>(rank)), c.shares[rank]) << rank;
      ASSERT_EQ(found[rank].size(), 2u);
      for (std::size_t k = 0; k < 2; ++k) {
        EXPECT_TRUE(at::equal(found[rank][k], expected[rank][k]))
            << c.topology << ", worker " << rank;
      }
    }
  }
}

TEST(SharedParameters, LieWhereOtherProcessesCanReadThem) {
  Two module;
  const at::Tensor before = module.w.detach().clone();
  FlatParameters flat = flatten_parameters(module);
  add_spares(flat, Lends::shared_memory);
  EXPECT_TRUE(at::equal(module.w, before));
  for (const Bucket& bucket : buckets_of(flat)) {
    const std::size_t bytes = static_cast<std::size_t>(bucket.count) * size_of(bucket.dtype);
    for (const Memory& memory : {bucket.x, bucket.spare}) {
      ASSERT_NE(memory.owner.shared(), nullptr);
      EXPECT_TRUE(memory.owner.shared()->contains(memory.data, bytes));
    }
  }
  flip(flat);
  EXPECT_EQ(module.w.abs().sum().item<float>(), 0);
  flip(flat);
  EXPECT_TRUE(at::equal(module.w, before));
  const at::Tensor kept = flat.values[0];
  flat = {};
  EXPECT_GT(kept.abs().sum().item<double>(), 0);  // the memory lives as long as a view of it
}

}  // namespace
}  // namespace gossamer
