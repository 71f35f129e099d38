#pragma once
/// Batches of images in shuffled epochs: every batch is a pure function of seed, step and worker.

#include <cstdint>
#include <vector>

#include "gossamer/data/augment.h"
#include "gossamer/data/image_set.h"
#include "gossamer/data/sharding.h"
#include "gossamer/torch/modules/model.h"

namespace gossamer {

/// Indices of samples, disjoint, in ascending order.
struct ImageSplit {
  std::vector<std::int64_t> training;
  std::vector<std::int64_t> validation;
};

/// Every k-th sample goes to validation, k = round(1 / `validation_fraction`); at least one sample
/// stays on either side. Throws std::invalid_argument unless 0 < fraction ≤ ½ and there are two.
ImageSplit split_images(const ImageSet& images, double validation_fraction);

struct ImageBatchPlan {
  std::int64_t global_batch = 64;
  std::uint64_t seed = 1;
  /// 0: all workers draw from one shuffled set, and the global batch does not depend on their
  /// number. k > 0: the samples are sorted by class and cut into k pieces per worker, which are
  /// dealt at random, so that a worker sees few classes (McMahan et al. 2017).
  int pieces_per_worker = 0;
};

/// The indices (into `training`) of the worker's part of batch `step`. Epochs run on through the
/// batches, and each sample comes once per epoch. For unequal data `training` must be ordered by
/// class: see sorted_by_class().
std::vector<std::int64_t> image_indices(std::int64_t training_count, const ImageBatchPlan& plan,
                                        std::int64_t step, Shard shard);

/// `samples` ordered by label, ties by index.
std::vector<std::int64_t> sorted_by_class(const ImageSet& images,
                                          std::vector<std::int64_t> samples);

/// How the pixels 0 … 255 of a channel become numbers: (pixel/255 − mean) / deviation.
struct PixelScale {
  double mean = 0;
  double deviation = 1;
};

/// So many images in files tell the scale of all.
inline constexpr std::int64_t kScaleSamples = 2048;

/// Mean and deviation over all pixels of the samples, by channel; deviation 1 when they are equal.
/// Where images are decoded first: of kScaleSamples of them, which are always the same ones.
std::vector<PixelScale> pixel_scales(const ImageSet& images,
                                     const std::vector<std::int64_t>& samples);

/// The samples as a batch, each changed as `moves` says unless that is empty.
Batch image_batch(const ImageSet& images, const std::vector<PixelScale>& scales,
                  const std::vector<std::int64_t>& samples, const std::vector<Move>& moves = {});

}  // namespace gossamer
