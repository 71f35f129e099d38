#pragma once
/// Cuts the samples that are held out into batches. Internal to the tasks.

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "gossamer/torch/data/task.h"

namespace gossamer {

/// The first validation_samples of them, in order, validation_batch at a time: take(samples of a
/// batch, how many came before).
template <class Take>
void cut_validation(std::span<const std::int64_t> samples, const TaskArgs& args, const Take& take) {
  const std::int64_t count = std::min<std::int64_t>(std::ssize(samples), args.validation_samples);
  for (std::int64_t first = 0; first < count; first += args.validation_batch) {
    const std::int64_t rows = std::min(args.validation_batch, count - first);
    take(samples.subspan(static_cast<std::size_t>(first), static_cast<std::size_t>(rows)), first);
  }
}

/// What make(), called like take(), gives for each.
template <class Make>
std::vector<Batch> validation_batches(std::span<const std::int64_t> samples, const TaskArgs& args,
                                      const Make& make) {
  std::vector<Batch> batches;
  cut_validation(samples, args, [&](std::span<const std::int64_t> own, std::int64_t first) {
    batches.push_back(make(own, first));
  });
  return batches;
}

}  // namespace gossamer
