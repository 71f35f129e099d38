#include "gossamer/torch/modules/sinusoids.h"

#include <ATen/ATen.h>

#include <cmath>

namespace gossamer {

at::Tensor sinusoids(std::int64_t positions, std::int64_t width) {
  at::Tensor table = at::zeros({positions, width}, at::dtype(at::kDouble));
  auto* data = table.mutable_data_ptr<double>();
  for (std::int64_t p = 0; p < positions; ++p) {
    for (std::int64_t i = 0; i < width; ++i) {
      const double rate =
          std::pow(1e4, -static_cast<double>(i / 2 * 2) / static_cast<double>(width));
      const double angle = static_cast<double>(p) * rate;
      data[p * width + i] = i % 2 == 0 ? std::sin(angle) : std::cos(angle);
    }
  }
  return table;
}

}  // namespace gossamer
