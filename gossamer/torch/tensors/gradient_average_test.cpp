#include "gossamer/torch/tensors/gradient_average.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <array>
#include <functional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "gossamer/base/index.h"
#include "gossamer/base/test_errors.h"
#include "gossamer/engine/worker_threads.h"
#include "gossamer/graph/topology.h"
#include "gossamer/transport/threads.h"

namespace gossamer {
namespace {

constexpr double kTimeoutS = 20;

/// One of two workers, with tensors of its own.
struct Worker {
  explicit Worker(Transport& of) : transport(of), runner(of, kTimeoutS), rank(of.describe().rank) {}

  std::unique_ptr<GradientAverage> average(const std::vector<at::Tensor>& tensors) {
    std::vector<AveragedTensor> named;
    for (const at::Tensor& tensor : tensors) {
      named.push_back({std::string(1, static_cast<char>('a' + named.size())), tensor});
    }
    return std::make_unique<GradientAverage>(named, GradientOptions{}, runner,
                                             Seating{shape, rank});
  }
  double own() const { return rank + 1; }  // the mean is 1.5
  std::int64_t sent() const {
    const auto edges = transport.describe().edges;
    return edges.empty() ? 0 : edges[0].sent;
  }

  Transport& transport;
  ExchangeRunner runner;
  int rank;
  HostShape shape{{2}};
};

void with_two(const std::function<void(Worker&)>& work) {
  run_workers(make_threads_transports({.hosts = {{.workers = 2}}}), [&](Transport& transport) {
    Worker worker(transport);
    work(worker);
  });
}

at::Tensor leaf_of_rows(std::int64_t rows = 2) { return at::ones({rows, 3}).requires_grad_(true); }

double value(const at::Tensor& tensor) {
  EXPECT_TRUE(tensor.defined());
  EXPECT_EQ(tensor.min().item<double>(), tensor.max().item<double>());
  return tensor.max().item<double>();
}

TEST(GradientAverage, AveragesWhatIsThawedAndSendsNothingOfWhatIsFrozen) {
  with_two([](Worker& worker) {
    at::Tensor large = leaf_of_rows(10000);
    const at::Tensor other = leaf_of_rows();
    large.requires_grad_(false);
    const auto average = worker.average({large, other});
    const auto pass = [&] {
      large.mutable_grad() = other.mutable_grad() = at::Tensor();
      const std::int64_t before = worker.sent();
      (worker.own() * (large.sum() + other.sum())).backward();
      average->end_step();
      return worker.sent() - before;
    };
    EXPECT_LT(pass(), 1000);
    EXPECT_EQ(value(other.grad()), 1.5);
    EXPECT_FALSE(large.grad().defined());
    large.requires_grad_(true);  // nobody is told
    EXPECT_GT(pass(), 10000);
    EXPECT_EQ(value(large.grad()), 1.5);
    large.requires_grad_(false);
    EXPECT_LT(pass(), 1000);
  });
}

TEST(GradientAverage, WorkersReachSeveralInAnyOrder) {
  constexpr std::size_t kSeveral = 3;
  std::vector<std::vector<std::unique_ptr<Transport>>> teams;
  for (std::size_t k = 0; k < kSeveral; ++k) {
    teams.push_back(make_threads_transports({.hosts = {{.workers = 2}}}));
  }
  with_two([&](Worker& worker) {
    const auto own = static_cast<std::size_t>(worker.rank);
    std::vector<std::unique_ptr<Worker>> workers;
    std::vector<std::unique_ptr<GradientAverage>> averages;
    std::vector<at::Tensor> tensors;
    for (std::size_t k = 0; k < kSeveral; ++k) {
      workers.push_back(std::make_unique<Worker>(*teams[k][own]));
      tensors.push_back(leaf_of_rows());
      averages.push_back(workers[k]->average({tensors[k]}));
    }
    at::Tensor chain = at::ones({2, 3});
    for (std::size_t k = 0; k < kSeveral; ++k) {
      chain = chain * tensors[worker.rank == 0 ? k : kSeveral - 1 - k];
    }
    (worker.own() * chain.sum()).backward();
    for (const at::Tensor& tensor : tensors) EXPECT_EQ(value(tensor.grad()), 1.5);
  });
}

TEST(GradientAverage, AveragesInTheStepWhatNoPassHas) {
  with_two([](Worker& worker) {
    const at::Tensor one = leaf_of_rows();
    const at::Tensor other = leaf_of_rows();
    const auto average = worker.average({one, other});
    const auto assign = [&](const at::Tensor& tensor) {
      tensor.mutable_grad() = at::full({2, 3}, worker.own());
    };
    const auto expect_averaged_by = [&](std::int64_t passes) {
      average->average_missed();
      EXPECT_TRUE(average->are_averaged());
      EXPECT_EQ(average->passes(), passes);
      EXPECT_EQ(value(one.grad()), 1.5);
      EXPECT_EQ(value(other.grad()), 1.5);
      average->end_step();
    };
    assign(one);
    assign(other);
    EXPECT_FALSE(average->are_averaged());
    expect_averaged_by(1);
    one.mutable_grad() = other.mutable_grad() = at::Tensor();
    (worker.own() * (one + other).sum()).backward();
    EXPECT_TRUE(average->are_averaged());
    expect_averaged_by(2);
    other.mutable_grad() = at::Tensor();
    (worker.own() * other.sum()).backward();
    assign(one);  // beside a pass
    expect_averaged_by(4);
    other.mutable_grad() = one.mutable_grad() = at::Tensor();
    average->set_enabled(false);
    (worker.own() * (one + other).sum()).backward();
    average->set_enabled(true);
    EXPECT_FALSE(average->are_averaged());
    expect_averaged_by(5);
  });
}

TEST(GradientAverage, KnowsAMeanThatWasChangedInPlace) {
  with_two([](Worker& worker) {
    const at::Tensor tensor = leaf_of_rows();
    const auto average = worker.average({tensor});
    (worker.own() * tensor.sum()).backward();
    tensor.mutable_grad().mul_(2);
    average->average_missed();
    EXPECT_EQ(average->passes(), 1);
    EXPECT_EQ(value(tensor.grad()), 3.0);
  });
}

TEST(GradientAverage, TakesWhatWasAssignedToAFrozenTensor) {
  with_two([](Worker& worker) {
    at::Tensor tensor = at::ones({2, 3});
    const auto average = worker.average({tensor});
    tensor.mutable_grad() = at::full({2, 3}, worker.own());
    for (int k = 0; k < 2; ++k) {
      average->average_missed();
      EXPECT_EQ(value(tensor.grad()), 1.5);
      average->end_step();
    }
  });
}

TEST(GradientAverage, GoesOnAfterAPassThatFailed) {
  with_two([](Worker& worker) {
    const at::Tensor one = leaf_of_rows();
    const at::Tensor other = leaf_of_rows();
    const auto average = worker.average({one, other});
    const at::Tensor inner = other * 2;
    inner.register_hook([](const at::Tensor&) -> at::Tensor { throw std::runtime_error("no"); });
    EXPECT_THROW((inner + one).sum().backward(), std::runtime_error);
    one.mutable_grad() = other.mutable_grad() = at::Tensor();
    (worker.own() * (one + other).sum()).backward();
    EXPECT_EQ(value(one.grad()), 1.5);
    EXPECT_EQ(value(other.grad()), 1.5);
  });
}

TEST(GradientAverage, RefusesUnequallyManyPassesOnEveryWorkerAndFromThenOn) {
  with_two([](Worker& worker) {
    const at::Tensor tensor = leaf_of_rows();
    const auto average = worker.average({tensor});
    tensor.sum().backward();
    if (worker.rank == 1) average->end_step();
    for (int k = 0; k < 2; ++k) {
      const std::string said = message_of([&] { tensor.sum().backward(); });
      EXPECT_NE(said.find("unequally often in a step"), std::string::npos) << said;
      EXPECT_NE(said.find(k == 0 ? "no_sync()" : "has failed before"), std::string::npos) << said;
    }
  });
}

TEST(GradientAverage, NamesWhatIsFrozenOnSomeWorkersOnly) {
  with_two([](Worker& worker) {
    at::Tensor tensor = leaf_of_rows();
    const at::Tensor other = leaf_of_rows();
    const auto average = worker.average({other, tensor});
    tensor.requires_grad_(worker.rank == 0);
    const std::string said = message_of([&] { (tensor + other).sum().backward(); });
    EXPECT_NE(said.find("parameter 'b' is frozen on some workers only, got 1 of 2"),
              std::string::npos)
        << said;
  });
}

/// A gradient that has these rows.
at::Tensor rows(const std::vector<std::int64_t>& which, const at::Tensor& values) {
  return at::_sparse_coo_tensor_unsafe(at::tensor(which).unsqueeze(0), values, {5, 2},
                                       values.options().layout(at::kSparse));
}

TEST(GradientAverage, AveragesSparseGradientsByRowsAndLeavesThemSparse) {
  with_two([](Worker& worker) {
    for (const at::ScalarType type : {at::kFloat, at::kDouble, at::kComplexFloat, at::kHalf}) {
      const at::Tensor tensor = at::ones({5, 2}, type).requires_grad_(true);
      const at::Tensor dense = leaf_of_rows();
      const auto average = worker.average({tensor, dense});
      for (int step = 0; step < 3; ++step) {
        const at::Tensor one = at::ones({2, 2}, type);
        tensor.mutable_grad() = worker.rank == 0 ? rows({4, 1}, one * 2) : rows({1, 1}, one);
        dense.mutable_grad() = at::full({2, 3}, worker.own());
        average->average_missed();
        average->end_step();
        ASSERT_TRUE(tensor.grad().is_sparse());
        const at::Tensor found = tensor.grad().coalesce();
        EXPECT_TRUE(at::equal(found.indices()[0], at::tensor(std::vector<std::int64_t>{1, 4})));
        const at::Tensor expected = at::tensor({2.0, 2.0, 1.0, 1.0}).view({2, 2}).to(type);
        EXPECT_TRUE(at::equal(found.values(), expected)) << found.values();
        EXPECT_EQ(value(dense.grad()), 1.5);
      }
    }
  });
}

TEST(GradientAverage, OneWorkersSparseGradientMeetsAnothersDenseOneOrNone) {
  with_two([](Worker& worker) {
    const at::Tensor tensor = at::ones({5, 2}).requires_grad_(true);
    const auto average = worker.average({tensor});
    const at::Tensor sparse = rows({3, 0}, at::ones({2, 2}));
    const at::Tensor half = sparse.to_dense() / 2;
    for (int step = 0; step < 2; ++step) {  // also when everybody knows that it is sparse
      tensor.mutable_grad() = worker.rank == 0 ? sparse.clone() : at::Tensor();
      average->average_missed();
      average->end_step();
      EXPECT_TRUE(at::equal(tensor.grad().to_dense(), half));
      tensor.mutable_grad() = worker.rank == 0 ? sparse.clone() : at::ones({5, 2});
      average->average_missed();
      average->end_step();
      EXPECT_EQ(tensor.grad().is_sparse(), worker.rank == 0);
      EXPECT_TRUE(at::equal(tensor.grad().to_dense(), half + 0.5));
    }
  });
}

TEST(GradientAverage, RefusesTensorsInSeveralPlacesByName) {
  with_two([](Worker& worker) {
    const at::Tensor elsewhere = at::ones({2}, at::device(at::kMeta));
    const std::string said = message_of([&] { worker.average({leaf_of_rows(), elsewhere}); });
    EXPECT_NE(said.find("parameter 'a' on cpu, 'b' on meta; move"), std::string::npos) << said;
  });
}

/// Worker 0 takes a quarter of worker 1's gradient, in even steps; worker 1 takes nothing.
TEST(GradientAverage, GossipsByTheRoundsOfItsSteps) {
  with_two([](Worker& worker) {
    const Round even = sparse_round(2, {{{0, 0.75}, {1, 0.25}}, {{1, 1.0}}});
    const Schedule rounds =
        periodic_schedule("quarter", worker.shape, {even, identity_round(2)}, Stochasticity::row);
    const at::Tensor tensor = leaf_of_rows();
    GradientAverage average({{"a", tensor}}, {.rounds = rounds, .first_round = 4}, worker.runner,
                            Seating{worker.shape, worker.rank});
    for (int step = 0; step < 4; ++step) {
      tensor.mutable_grad() = at::Tensor();
      (worker.own() * tensor.sum()).backward();
      const bool mixes = step % 2 == 0 && worker.rank == 0;
      EXPECT_EQ(value(tensor.grad()), mixes ? 1.25 : worker.own());
      EXPECT_TRUE(average.are_averaged());
      average.end_step();
    }
    tensor.mutable_grad() = at::full({2, 3}, worker.own()).to_sparse();
    EXPECT_THROW(average.average_missed(), std::invalid_argument);
  });
}

/// Gradients of four workers on hosts of their own, before and after a pass.
struct Gossiped {
  std::array<at::Tensor, 4> before, after;
};

Gossiped gossiped(const Schedule& rounds, Codec codec) {
  constexpr std::int64_t kRows = 5000;
  Gossiped found;
  run_workers(make_threads_transports({.hosts = std::vector<HostSpec>(4)}),
              [&](Transport& transport) {
                const int rank = transport.describe().rank;
                ExchangeRunner runner(transport, kTimeoutS);
                const at::Tensor tensor = at::ones({kRows, 3}, at::kDouble).requires_grad_(true);
                GradientAverage average({{"a", tensor}}, {.codec = codec, .rounds = rounds}, runner,
                                        Seating{rounds.shape, rank});
                tensor.mutable_grad() =
                    at::linspace(-rank, 1 + rank, 3 * kRows, at::kDouble).sin().view({kRows, 3});
                found.before[at(rank)] = tensor.grad().clone();
                average.average_missed();
                found.after[at(rank)] = tensor.grad().clone();
              });
  return found;
}

TEST(GradientAverage, CodedGossipKeepsTheMeanOfTheWorkers) {
  const HostShape shape = even_hosts(4, 1);
  const Round passed_on = sparse_round(4, {{{1, 1}}, {{2, 1}}, {{3, 1}}, {{0, 1}}});
  for (const Schedule& rounds : {make_topology("ring", {.shape = shape}),
                                 periodic_schedule("passed on", shape, {passed_on})}) {
    for (const Codec codec : kLossyCodecs) {
      const auto [before, after] = gossiped(rounds, codec);
      const at::Tensor moved = at::stack(after).mean(0) - at::stack(before).mean(0);
      EXPECT_LT(moved.abs().max().item<double>(), 1e-12) << rounds.name << " " << name_of(codec);
      at::Tensor exact = at::zeros_like(before[0]);
      for (const Entry& entry : row_of(round_at(rounds, 0), 0)) {
        exact += entry.weight * before[at(entry.worker)];
      }
      const double off = (after[0] - exact).abs().max().item<double>();
      EXPECT_LT(off, 0.02) << rounds.name << " " << name_of(codec);
      EXPECT_GT(off, 0) << "nothing was coded";
    }
  }
}

}  // namespace
}  // namespace gossamer
