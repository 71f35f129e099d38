// What all workers agree on: losses, and the consensus average.
#include <cmath>
#include <cstring>
#include <utility>

#include "gossamer/base/errors.h"
#include "gossamer/engine/engine.h"
#include "gossamer/engine/typed_span.h"
#include "gossamer/kernels/mix_only.h"
#include "gossamer/kernels/norm.h"

namespace gossamer {
namespace {

/// Σ (a − b)² and Σ b² over two vectors of the same dtype.
std::pair<double, double> distance_and_norm(DType dtype, const void* a, const void* b,
                                            std::int64_t count) {
  return visit_dtype(dtype, [&]<class T>(T) {
    const auto n = static_cast<std::size_t>(count);
    const std::span<const T> first{static_cast<const T*>(a), n};
    const std::span<const T> second{static_cast<const T*>(b), n};
    return std::pair{distance_squares(first, second), sum_squares(second)};
  });
}

/// x ← weight · x.
void scale(const Bucket& bucket, double weight) {
  if (weight == 1) return;
  visit_dtype(bucket.dtype, [&]<class T>(T) {
    mix_only<T>({.x = typed<T>(bucket.x, 0, bucket.count)}, {.self_weight = weight});
  });
}

}  // namespace

/// The loss before the first step and after every global average is averaged over all workers.
void Engine::agree_on_loss(double loss) {
  const bool first = step_ == 0;
  if (!first && !is_global_average(round_at(options_.schedule, step_, losses_))) return;
  collectives_.mean({&loss, 1});
  losses_.push_back({first ? 0 : step_ + 1, loss});
}

double Engine::load_average() {
  GOSSAMER_ASSERT(local_.empty());
  quiesce();                // x must not change while it travels
  double sums[2] = {0, 0};  // ‖x_i − x̄‖², ‖x̄‖²
  for (const auto& lane : lanes_) {
    const Bucket& bucket = lane->bucket();
    const auto bytes = static_cast<std::size_t>(bucket.count) * size_of(bucket.dtype);
    const auto* x = static_cast<const std::byte*>(bucket.x);
    local_.emplace_back(x, x + bytes);
    scale(bucket, weight_in(round_of(*lane, step_)));
    collectives_.mean(bucket.dtype, bucket.x, bucket.x, bucket.count);
    const auto [distance, norm] =
        distance_and_norm(bucket.dtype, local_.back().data(), bucket.x, bucket.count);
    sums[0] += distance;
    sums[1] += norm;
  }
  collectives_.mean({&sums[0], 1});
  return sums[1] > 0 ? std::sqrt(sums[0] / sums[1]) : 0;
}

void Engine::restore_local() {
  GOSSAMER_ASSERT(local_.size() == lanes_.size());
  for (std::size_t b = 0; b < lanes_.size(); ++b) {
    std::memcpy(lanes_[b]->bucket().x, local_[b].data(), local_[b].size());
  }
  local_.clear();
}

}  // namespace gossamer
