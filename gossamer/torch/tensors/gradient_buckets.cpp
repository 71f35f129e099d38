#include "gossamer/torch/tensors/gradient_buckets.h"

#include <ATen/ATen.h>

#include <utility>

#include "gossamer/torch/tensors/tensor_views.h"

namespace gossamer {

GradientBuckets make_buckets(std::span<const at::Tensor> tensors, std::vector<char> chosen,
                             std::int64_t bucket_bytes, const Averagers& all, Codec codec,
                             const std::optional<c10::Stream>& out) {
  GradientBuckets made{.chosen = std::move(chosen),
                       .buckets = {},
                       .bucket_of = std::vector(tensors.size(), GradientBuckets::kNone)};
  std::vector<std::int64_t> counts;
  std::vector<DType> dtypes;
  for (std::size_t i = tensors.size(); i-- > 0;) {
    if (made.chosen[i] == 0) continue;
    const DType dtype = mixing_dtype(tensors[i]);
    const std::int64_t count = as_real(tensors[i].detach()).numel();
    const auto size = static_cast<std::int64_t>(size_of(dtype));
    const bool fits =
        !counts.empty() && dtypes.back() == dtype && (counts.back() + count) * size <= bucket_bytes;
    if (!fits) {
      made.buckets.emplace_back();
      counts.push_back(0);
      dtypes.push_back(dtype);
    }
    made.buckets.back().tensors.push_back(i);
    made.bucket_of[i] = made.buckets.size() - 1;
    counts.back() += count;
  }
  std::vector<FlatAverage*> averages;
  for (std::size_t b = 0; b < made.buckets.size(); ++b) {
    made.buckets[b].average = FlatAverage(all, dtypes[b], counts[b], codec);
    averages.push_back(&made.buckets[b].average);
  }
  const auto shared = place(averages, all.runner->transport(), out.has_value());
  std::shared_ptr<PinnedRange> pinned;
  if (out) pinned = std::make_shared<PinnedRange>(out->device(), shared);
  for (GradientBucket& bucket : made.buckets) {
    std::int64_t offset = 0;
    for (const std::size_t i : bucket.tensors) {
      const at::Tensor real = as_real(tensors[i].detach());
      bucket.views.push_back(view_like(bucket.average.flat(), offset, real));
      offset += real.numel();
    }
    if (!out) continue;
    const at::Tensor& flat = bucket.average.flat();
    bucket.pinned = pinned;
    bucket.stage = std::make_unique<GradientStage>(*out, flat, bucket.views);
  }
  return made;
}

}  // namespace gossamer
