#include "gossamer/torch/devices/late_values.h"

#include <ATen/ATen.h>

#include <utility>

#include "gossamer/torch/devices/streams.h"

namespace gossamer {

void LateValues::add(std::int64_t step, const at::Tensor& values) {
  Coming coming{.step = step,
                .here = pinned_zeros(values.numel(), values.scalar_type()),
                .over = c10::Event(values.device().type())};
  coming.here.copy_(values, /*non_blocking=*/true);
  coming.over.record(current_stream(values.device()));
  coming_.push_back(std::move(coming));
}

std::optional<LateValues::Known> LateValues::take(bool waits) {
  if (coming_.empty()) return std::nullopt;
  Coming& oldest = coming_.front();
  if (waits || coming_.size() > kMost)
    oldest.over.synchronize();
  else if (!oldest.over.query())
    return std::nullopt;
  const at::Tensor numbers = oldest.here.to(at::kDouble);
  const auto* data = numbers.const_data_ptr<double>();
  Known known{oldest.step, {data, data + numbers.numel()}};
  coming_.pop_front();
  return known;
}

}  // namespace gossamer
