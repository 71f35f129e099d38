#pragma once
/// Blocking operations over all workers, for start-up, evaluation and checkpoints. Every worker
/// must call them in the same order.

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "gossamer/base/cluster.h"
#include "gossamer/base/dtype.h"
#include "gossamer/engine/exchange_runner.h"
#include "gossamer/engine/seating.h"

namespace gossamer {

/// Runs collectives of one worker over its runner.
class Collectives {
 public:
  /// `first_call`: more than others on the same transport will ever have made.
  Collectives(ExchangeRunner& runner, Seating seating, std::int64_t first_call = 0)
      : runner_(runner),
        seating_(std::move(seating)),
        tree_(tree_of(seating_)),
        calls_(first_call) {}

  /// into = mean over workers of from, the same bits everywhere; hierarchical. The two may be the
  /// same memory. `count` elements of `dtype`.
  void mean(DType dtype, const void* from, void* into, std::int64_t count);
  void mean(std::span<double> values) {
    mean(DType::f64, values.data(), values.data(), std::ssize(values));
  }
  /// Gives everybody the bytes of the first worker, along a binary tree.
  void broadcast(std::span<std::byte> bytes);
  /// The same for a text, of any length.
  void broadcast(std::string& text);
  /// What each worker says, by position; of any length. Along a binary tree up and down.
  std::vector<std::string> gather(const std::string& own);
  /// Returns once every worker has called it.
  void barrier();

  const Seating& seating() const { return seating_; }
  int rank() const { return seating_.rank(); }
  int workers() const { return seating_.workers(); }
  const HostShape& shape() const { return seating_.shape; }

 private:
  void finish(Request request, std::span<std::byte> landing = {});
  void send_text(int peer, const std::string& text, std::int64_t call);
  std::string receive_text(int peer, std::int64_t call);

  ExchangeRunner& runner_;
  const Seating seating_;
  const Tree tree_;
  std::int64_t calls_;
};

}  // namespace gossamer
