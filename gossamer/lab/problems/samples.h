#pragma once
/// Samples of linear models, worker by worker in one memory, and which of them a step draws.

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "gossamer/base/rng.h"
#include "gossamer/lab/problem.h"

namespace gossamer {

struct FreeArray {
  void operator()(float* array) const { std::free(array); }
};
using LargeArray = std::unique_ptr<float[], FreeArray>;
/// Not initialised, on lines of the cache, and on large pages if it is large. Throws
/// std::bad_alloc.
LargeArray make_large_array(std::size_t count);

/// How many samples there are, and of how many numbers.
struct SamplesShape {
  int workers = 0;
  int dimension = 0;
  int per_worker = 0;
  bool has_targets = true;  ///< else rows are features only
};

/// n workers with `per_worker` rows of d features and a target each. Rows begin at lines of the
/// cache and are in single precision, which halves what a step has to fetch from random places;
/// what is computed with them is in double. They lie in large pages where the system gives them:
/// from random places in small ones a step would wait for address translations.
class Samples {
 public:
  explicit Samples(const SamplesShape& shape)
      : workers_(shape.workers),
        per_worker_(shape.per_worker),
        d_(static_cast<std::size_t>(shape.dimension)),
        width_(d_ + (shape.has_targets ? 1 : 0)),
        stride_((width_ + kLine - 1) / kLine * kLine),
        rows_(make_large_array(count() * stride_)) {}

  int workers() const { return workers_; }
  int dimension() const { return static_cast<int>(d_); }
  int per_worker() const { return per_worker_; }
  std::size_t count() const {
    return static_cast<std::size_t>(workers_) * static_cast<std::size_t>(per_worker_);
  }
  /// d features, and the target if there is one.
  std::span<float> row(std::size_t index) { return {rows_.get() + index * stride_, width_}; }
  const float* row(std::size_t index) const { return rows_.get() + index * stride_; }
  double target(std::size_t index) const { return static_cast<double>(row(index)[d_]); }
  /// Asks for all lines of a row, up to the cache that has room for more requests at once.
  void prefetch(std::size_t index) const {
    for (std::size_t k = 0; k < stride_; k += kLine) __builtin_prefetch(row(index) + k, 0, 2);
  }

 private:
  static constexpr std::size_t kLine = 64 / sizeof(float);
  int workers_;
  int per_worker_;
  std::size_t d_;
  std::size_t width_;
  std::size_t stride_;
  LargeArray rows_;
};

/// Features as the spec says; finish(row, a·x*_i) makes of each row what is kept, in the order of
/// rows. Throws std::invalid_argument for numbers that make no sense.
Samples linear_samples(const SyntheticSpec& spec, bool has_targets,
                       const std::function<void(std::span<float>, float)>& finish);

/// A draw: a worker and one of its rows.
struct Drawn {
  std::size_t worker = 0;
  std::size_t row = 0;
  bool is_first = false;  ///< of the worker's in this step
};

/// At most so many draws are visited at once. Asking for the rows of many more in a row would fill
/// what the processor has for answers that are under way, and everything else would wait.
inline constexpr std::size_t kDrawsAtOnce = 16;

/// The samples that workers draw in a step, worker by worker; batch 0: all samples.
class Draws {
 public:
  Draws(const Samples& samples, int batch, const Draw& draw)
      : samples_(samples),
        per_worker_(static_cast<std::uint64_t>(samples.per_worker())),
        all_(batch == 0),
        each_(all_ ? per_worker_ : static_cast<std::uint64_t>(batch)),
        left_(static_cast<std::size_t>(samples.workers()) * each_),
        base_(mix_bits(draw.seed, static_cast<std::uint64_t>(draw.step))) {
    for (std::size_t k = 0; k < kBlocksAhead; ++k) fetch();
  }

  /// The next ones; none after the last. Their memory is asked for some calls ahead: they lie at
  /// random places, and the step would wait for each of them.
  std::span<const Drawn> next() {
    fetch();
    const Block& now = blocks_[taken_++ % blocks_.size()];
    return {now.drawn.data(), now.count};
  }

 private:
  static constexpr std::size_t kBlocksAhead = 4;

  struct Block {
    std::array<Drawn, kDrawsAtOnce> drawn;
    std::size_t count;
  };

  void fetch() {
    Block& block = blocks_[fetched_++ % blocks_.size()];
    block.count = std::min(kDrawsAtOnce, left_);
    left_ -= block.count;
    for (std::size_t k = 0; k < block.count; ++k) {
      const auto wide =
          static_cast<unsigned __int128>(counted_bits(base_, counter_++)) * per_worker_;
      const std::uint64_t index = all_ ? in_worker_ : static_cast<std::uint64_t>(wide >> 64);
      block.drawn[k] = {worker_, worker_ * per_worker_ + index, in_worker_ == 0};
      samples_.prefetch(block.drawn[k].row);
      if (++in_worker_ == each_) {
        in_worker_ = 0;
        ++worker_;
      }
    }
  }

  const Samples& samples_;
  const std::uint64_t per_worker_;
  const bool all_;
  const std::uint64_t each_;
  std::size_t left_;
  const std::uint64_t base_;
  std::uint64_t counter_ = 0;
  std::uint64_t worker_ = 0;
  std::uint64_t in_worker_ = 0;
  std::size_t fetched_ = 0;  ///< blocks
  std::size_t taken_ = 0;
  std::array<Block, kBlocksAhead + 1> blocks_;
};

/// Calls visit(span of Drawn) for all of them.
template <class Visit>
void for_each_drawn(const Samples& samples, int batch, const Draw& draw, Visit visit) {
  Draws draws(samples, batch, draw);
  for (auto drawn = draws.next(); !drawn.empty(); drawn = draws.next()) visit(drawn);
  // What the next step begins with, should it follow.
  Draws(samples, batch, {draw.seed, draw.step + 1});
}

/// a·b of `count` numbers.
template <class A, class B>
double dot(const A* a, const B* b, std::size_t count) {
  double even = 0;
  double odd = 0;
  std::size_t k = 0;
  for (; k + 1 < count; k += 2) {
    even += static_cast<double>(a[k]) * static_cast<double>(b[k]);
    odd += static_cast<double>(a[k + 1]) * static_cast<double>(b[k + 1]);
  }
  if (k < count) even += static_cast<double>(a[k]) * static_cast<double>(b[k]);
  return even + odd;
}

}  // namespace gossamer
