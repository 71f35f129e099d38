// What all workers agree on: losses, and the consensus average.
#include <cmath>
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
void scale(DType dtype, void* x, std::int64_t count, double weight) {
  if (weight == 1) return;
  visit_dtype(dtype, [&]<class T>(T) {
    mix_only<T>({.x = typed<T>(x, 0, count)}, {.self_weight = weight});
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
    const auto [dtype, count] = std::pair{lane->bucket().dtype, lane->bucket().count};
    std::vector<std::byte>& local = local_.emplace_back(lane->bytes());
    lane->read_parameters(local.data());
    std::vector<std::byte> mean = local;
    scale(dtype, mean.data(), count, weight_in(round_of(*lane, step_)));
    collectives_.mean(dtype, mean.data(), mean.data(), count);
    lane->write_parameters(mean.data());
    const auto [distance, norm] = distance_and_norm(dtype, local.data(), mean.data(), count);
    sums[0] += distance;
    sums[1] += norm;
  }
  collectives_.mean({&sums[0], 1});
  return sums[1] > 0 ? std::sqrt(sums[0] / sums[1]) : 0;
}

void Engine::restore_local() {
  GOSSAMER_ASSERT(local_.size() == lanes_.size());
  for (std::size_t b = 0; b < lanes_.size(); ++b) lanes_[b]->write_parameters(local_[b].data());
  local_.clear();
}

}  // namespace gossamer
