#pragma once
/// Blocking operations over all workers, for start-up, evaluation and checkpoints. Every worker
/// must call them in the same order.

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "gossamer/base/cluster.h"
#include "gossamer/base/dtype.h"
#include "gossamer/engine/exchange_runner.h"

namespace gossamer {

/// The neighbours of a worker in the binary tree of broadcasts: its parent first, if it has one.
std::vector<int> tree_peers(int rank, int workers);

/// Runs collectives of one worker over its runner.
class Collectives {
 public:
  /// `first_call`: more than others on the same transport will ever have made.
  Collectives(ExchangeRunner& runner, HostShape shape, int rank, std::int64_t first_call = 0)
      : runner_(runner), shape_(std::move(shape)), rank_(rank), calls_(first_call) {}

  /// into = mean over workers of from, the same bits everywhere; hierarchical. The two may be the
  /// same memory. `count` elements of `dtype`.
  void mean(DType dtype, const void* from, void* into, std::int64_t count);
  void mean(std::span<double> values) {
    mean(DType::f64, values.data(), values.data(), std::ssize(values));
  }
  /// Gives everybody rank 0's bytes, along a binary tree.
  void broadcast(std::span<std::byte> bytes);
  /// What each worker says, by rank; of any length. Along a binary tree up and down.
  std::vector<std::string> gather(const std::string& own);
  /// Returns once every worker has called it.
  void barrier();

  int rank() const { return rank_; }
  int workers() const { return shape_.workers(); }
  const HostShape& shape() const { return shape_; }

 private:
  Tag next_tag();
  void finish(Request request, std::span<std::byte> landing = {});
  void send_text(int peer, const std::string& text, std::int64_t call);
  std::string receive_text(int peer, std::int64_t call);

  ExchangeRunner& runner_;
  HostShape shape_;
  int rank_;
  std::int64_t calls_;
};

}  // namespace gossamer
