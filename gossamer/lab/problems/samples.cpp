#include "gossamer/lab/problems/samples.h"

#include <sys/mman.h>

#include <cmath>
#include <new>
#include <string>

#include "gossamer/base/aligned_bytes.h"
#include "gossamer/base/errors.h"

namespace gossamer {
namespace {

constexpr std::size_t kLargePage = std::size_t{2} << 20;
// Streams of the seed; workers count from kFirstWorker on.
constexpr std::uint64_t kCommon = 0;
constexpr std::uint64_t kFirstWorker = 16;

void check(bool good, const char* key, const char* range, double got) {
  if (good) return;
  fail_argument(
      {.place = "lab", .what = std::string(key) + " must be " + range, .got = std::to_string(got)});
}

void check(const SyntheticSpec& spec) {
  check(spec.workers >= 1, "workers", "1 or more", spec.workers);
  check(spec.dimension >= 1, "dimension", "1 or more", spec.dimension);
  check(spec.samples >= 1, "samples", "1 or more", spec.samples);
  check(spec.batch >= 0, "batch", "0 or more", spec.batch);
  check(spec.feature_variance > 0, "feature_variance", "above 0", spec.feature_variance);
  check(spec.heterogeneity >= 0 && spec.heterogeneity <= 1, "heterogeneity", "from 0 to 1",
        spec.heterogeneity);
  check(spec.model_norm >= 0, "model_norm", "0 or more", spec.model_norm);
  check(spec.noise >= 0, "noise", "0 or more", spec.noise);
  check(spec.ridge >= 0, "ridge", "0 or more", spec.ridge);
  const double bytes = 8. * spec.workers * spec.dimension * spec.samples;
  check(bytes < 64e9, "workers x dimension x samples", "less than 8e9 numbers", bytes / 8);
}

/// A random direction.
std::vector<double> unit_vector(int dimension, Rng rng) {
  std::vector<double> v(static_cast<std::size_t>(dimension));
  for (double& value : v) value = rng.normal();
  const double norm = std::sqrt(dot(v.data(), v.data(), v.size()));
  for (double& value : v) value /= norm;
  return v;
}

}  // namespace

LargeArray make_large_array(std::size_t count) {
  const std::size_t bytes = count * sizeof(float);
  const std::size_t page = bytes < kLargePage ? kCacheLine : kLargePage;
  const std::size_t whole = (bytes + page - 1) / page * page;
  LargeArray array(static_cast<float*>(std::aligned_alloc(page, std::max(whole, page))));
  if (!array) throw std::bad_alloc();
  if (page == kLargePage) ::madvise(array.get(), whole, MADV_HUGEPAGE);  // refused: small pages do
  return array;
}

Samples linear_samples(const SyntheticSpec& spec, bool has_targets,
                       const std::function<void(std::span<float>, float)>& finish) {
  check(spec);
  Samples samples({.workers = spec.workers,
                   .dimension = spec.dimension,
                   .per_worker = spec.samples,
                   .has_targets = has_targets});
  const auto d = static_cast<std::size_t>(spec.dimension);
  const double scale = std::sqrt(spec.feature_variance);
  const double h = spec.heterogeneity;
  const std::vector<double> common = unit_vector(spec.dimension, Rng(spec.seed, kCommon));
  std::size_t next = 0;
  for (int i = 0; i < spec.workers; ++i) {
    const auto stream = kFirstWorker + 2 * static_cast<std::uint64_t>(i);
    std::vector<double> model = unit_vector(spec.dimension, Rng(spec.seed, stream));
    for (std::size_t k = 0; k < d; ++k) {
      model[k] = spec.model_norm * ((1 - h) * common[k] + h * model[k]);
    }
    Rng rng(spec.seed, stream + 1);
    for (int m = 0; m < spec.samples; ++m) {
      const std::span<float> row = samples.row(next++);
      for (std::size_t k = 0; k < d; ++k) row[k] = static_cast<float>(scale * rng.normal());
      finish(row, static_cast<float>(dot(row.data(), model.data(), d)));
    }
  }
  return samples;
}

}  // namespace gossamer
