#include "gossamer/torch/modules/initialise.h"

#include <ATen/ATen.h>
#include <torch/nn/module.h>

#include <cmath>

#include "gossamer/base/dtype.h"
#include "gossamer/base/errors.h"
#include "gossamer/base/name_hash.h"
#include "gossamer/base/rng.h"

namespace gossamer {
namespace {

template <class T>
void fill_normal(at::Tensor& parameter, double spread, Rng& rng) {
  T* data = parameter.mutable_data_ptr<T>();
  for (std::int64_t i = 0; i < parameter.numel(); ++i) {
    data[i] = static_cast<T>(spread * rng.normal());
  }
}

}  // namespace

void initialise(torch::nn::Module& module, std::uint64_t seed, const Spread& spread) {
  const at::NoGradGuard no_grad;
  for (auto& item : module.named_parameters()) {
    at::Tensor& parameter = item.value();
    if (parameter.dim() < 2) {
      parameter.fill_(item.key().ends_with("weight") ? 1 : 0);
      continue;
    }
    GOSSAMER_ASSERT(parameter.is_contiguous());
    Rng rng(seed, hash_of_name(item.key()));
    const double deviation = spread(item.key(), parameter);
    if (parameter.scalar_type() == at::kFloat) {
      fill_normal<float>(parameter, deviation, rng);
    } else {
      fill_normal<double>(parameter, deviation, rng);
    }
  }
}

double he_spread(const std::string&, const at::Tensor& parameter) {
  const std::int64_t fan_in =
      parameter.dim() == 2 ? parameter.size(0) : parameter.numel() / parameter.size(0);
  return std::sqrt(2.0 / static_cast<double>(fan_in));
}

}  // namespace gossamer
