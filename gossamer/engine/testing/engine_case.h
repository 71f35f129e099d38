#pragma once
/// For tests: a case that the engine and the dense oracle both run.

#include <algorithm>
#include <cmath>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "gossamer/base/index.h"
#include "gossamer/base/rng.h"
#include "gossamer/engine/engine.h"
#include "gossamer/engine/testing/dense_oracle.h"
#include "gossamer/engine/worker_threads.h"
#include "gossamer/transport/net/net_team.h"
#include "gossamer/transport/threads.h"

namespace gossamer::engine_case {

using reference::Gradient;
using reference::Matrix;

inline ClusterSpec free_links(const HostShape& shape) {
  ClusterSpec cluster;
  for (int workers : shape.workers_per_host)
    cluster.hosts.push_back({.workers = workers, .link = {}, .inside = {}});
  return cluster;
}

/// What both the engine and the oracle are told.
struct Case {
  EngineOptions options;
  std::vector<std::int64_t> bucket_sizes;
  std::vector<int> group_of;  ///< by element
  std::int64_t steps = 7;
  bool spares = false;    ///< the layer above offers two memories
  bool over_net = false;  ///< instead of over threads
  NetOptions net;
  std::int64_t average_at = -1;  ///< the step before which the consensus average is looked at

  std::int64_t dimension() const { return static_cast<std::int64_t>(group_of.size()); }
  HostShape shape() const { return options.schedule.shape; }
};

/// Quadratics with unequal curvature, centre and noise per worker, in double.
inline Gradient quadratics(std::uint64_t seed) {
  return [seed](int worker, std::int64_t step, const std::vector<double>& x) {
    std::vector<double> g(x.size());
    for (std::size_t k = 0; k < x.size(); ++k) {
      Rng fixed(mix_bits(seed, k), static_cast<std::uint64_t>(worker));
      Rng noise(mix_bits(seed + 1, k), static_cast<std::uint64_t>(1000 * worker + step));
      g[k] = (0.5 + fixed.uniform()) * (x[k] - fixed.normal()) + 0.1 * noise.normal();
    }
    return g;
  };
}

inline std::vector<Segment> segments_of(const Case& c, std::int64_t begin, std::int64_t count) {
  std::vector<Segment> segments;
  for (std::int64_t k = 0; k < count; ++k) {
    const int group = c.group_of[at(begin + k)];
    if (segments.empty() || segments.back().group != group) segments.push_back({k, 0, group});
    ++segments.back().count;
  }
  return segments;
}

/// One worker's parameters and gradients, in the engine's precision. Shared with peers that read
/// the parameters in place.
template <class T>
struct Model : std::enable_shared_from_this<Model<T>> {
  std::vector<T> x;
  std::vector<T> g;
  std::vector<T> spare;

  std::vector<Bucket> buckets(const Case& c) {
    std::vector<Bucket> all;
    std::int64_t begin = 0;
    for (std::int64_t count : c.bucket_sizes) {
      all.push_back(
          {dtype_of<T>(), x.data() + begin, g.data() + begin, count, segments_of(c, begin, count)});
      if (c.spares) {
        all.back().x.owner = this->shared_from_this();
        all.back().spare = {spare.data() + begin, this->shared_from_this()};
      }
      begin += count;
    }
    return all;
  }
  void set_gradient(const std::vector<double>& values) {
    for (std::size_t k = 0; k < g.size(); ++k) g[k] = static_cast<T>(values[k]);
  }
};

template <class T>
std::shared_ptr<Model<T>> first_model(const Case& c) {
  const auto model = std::make_shared<Model<T>>();
  for (auto* vector : {&model->x, &model->g, &model->spare}) {
    vector->resize(static_cast<std::size_t>(c.dimension()));
  }
  Rng rng(99);
  for (T& value : model->x) value = static_cast<T>(rng.normal());
  return model;
}

/// Calls `look(step, engine, model)` on every worker before each step and after the last.
using Look = std::function<void(std::int64_t, Engine&, Model<double>&)>;
inline void run_looking(const Case& c, const Gradient& gradient, const Look& look) {
  run_workers(make_threads_transports(free_links(c.shape())), [&](Transport& transport) {
    const int rank = transport.describe().rank;
    const auto model = first_model<double>(c);
    Engine engine(c.options, transport, model->buckets(c));
    engine.start();
    for (std::int64_t step = 0; step < c.steps; ++step) {
      look(step, engine, *model);
      model->set_gradient(gradient(rank, step, model->x));
      engine.step();
    }
    look(c.steps, engine, *model);
    engine.collectives().barrier();
  });
}

/// The engine's run of a case: all workers' parameters at the end.
template <class T>
Matrix engine_run(const Case& c, const Gradient& gradient) {
  Matrix result(static_cast<std::size_t>(c.shape().workers()));
  auto transports = c.over_net ? make_net_team(c.shape().workers(), c.net)
                               : make_threads_transports(free_links(c.shape()));
  run_workers(std::move(transports), [&](Transport& transport) {
    const int rank = transport.describe().rank;
    const auto model = first_model<T>(c);
    if (rank != 0) std::ranges::fill(model->x, static_cast<T>(rank));  // start() brings rank 0's
    Engine engine(c.options, transport, model->buckets(c));
    engine.start();
    for (std::int64_t step = 0; step < c.steps; ++step) {
      if (step == c.average_at) {
        engine.load_average();
        engine.restore_local();
      }
      model->set_gradient(gradient(rank, step, {model->x.begin(), model->x.end()}));
      for (std::size_t b = c.bucket_sizes.size(); b-- > 0;) {
        engine.gradient_ready(static_cast<int>(b));
      }
      engine.step();
      if (engine.alternates()) std::swap(model->x, model->spare);
    }
    engine.collectives().barrier();
    result[at(rank)].assign(model->x.begin(), model->x.end());
  });
  return result;
}

inline Matrix oracle_run(const Case& c, const Gradient& gradient) {
  reference::Run run{.pattern = c.options.pattern,
                     .optimizer = c.options.optimizer,
                     .groups = c.options.groups,
                     .group_of = c.group_of,
                     .round_shift = {},
                     .clip_norm = c.options.clip_norm,
                     .schedule = c.options.schedule};
  for (std::size_t b = 0; b < c.bucket_sizes.size(); ++b) {
    for (std::int64_t k = 0; k < c.bucket_sizes[b]; ++k) {
      run.round_shift.push_back(c.options.stagger ? static_cast<std::int64_t>(b) : 0);
    }
  }
  const std::vector<double> first = first_model<double>(c)->x;
  return reference::run(run, Matrix(static_cast<std::size_t>(c.shape().workers()), first), gradient,
                        c.steps);
}

inline double largest_difference(const Matrix& a, const Matrix& b) {
  double largest = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    for (std::size_t k = 0; k < a[i].size(); ++k) {
      largest = std::max(largest, std::abs(a[i][k] - b[i][k]) / (1 + std::abs(b[i][k])));
    }
  }
  return largest;
}

}  // namespace gossamer::engine_case
