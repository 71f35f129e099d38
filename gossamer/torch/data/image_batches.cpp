#include "gossamer/torch/data/image_batches.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string>

#include "gossamer/base/errors.h"
#include "gossamer/base/index.h"
#include "gossamer/base/rng.h"
#include "gossamer/data/load_image.h"

namespace gossamer {
namespace {

/// Sample `k` of an endless sequence of shuffled epochs over [0, count).
std::int64_t in_epochs(std::int64_t k, std::int64_t count, std::uint64_t key) {
  const auto epoch = static_cast<std::uint64_t>(k / count);
  return static_cast<std::int64_t>(permuted(static_cast<std::uint64_t>(k % count),
                                            static_cast<std::uint64_t>(count),
                                            mix_bits(key, epoch)));
}

/// Where element `k` of the worker's pieces, laid end to end, lies in the sorted set.
struct OwnPieces {
  OwnPieces(std::int64_t set_size, const ImageBatchPlan& plan, Shard shard) : count(set_size) {
    const int per_worker = plan.pieces_per_worker;
    pieces = std::int64_t{per_worker} * shard.workers;
    if (count < pieces) {
      fail_argument(
          {.place = "image batches",
           .what = "every piece needs at least one sample",
           .got = std::to_string(count) + " samples for " + std::to_string(pieces) + " pieces",
           .remedy = "lower the pieces per worker"});
    }
    for (int i = 0; i < per_worker; ++i) {
      const auto dealt =
          static_cast<std::uint64_t>(shard.worker) * static_cast<std::uint64_t>(per_worker) +
          static_cast<std::uint64_t>(i);
      own.push_back(static_cast<std::int64_t>(
          permuted(dealt, static_cast<std::uint64_t>(pieces), mix_bits(plan.seed, 1))));
      size += end(own.back()) - begin(own.back());
    }
  }

  std::int64_t begin(std::int64_t piece) const { return count * piece / pieces; }
  std::int64_t end(std::int64_t piece) const { return count * (piece + 1) / pieces; }

  std::int64_t at(std::int64_t k) const {
    for (const std::int64_t piece : own) {
      if (k < end(piece) - begin(piece)) return begin(piece) + k;
      k -= end(piece) - begin(piece);
    }
    GOSSAMER_ASSERT(false);
    return 0;
  }

  std::int64_t count = 0;
  std::int64_t pieces = 0;
  std::int64_t size = 0;
  std::vector<std::int64_t> own;
};

/// Whatever the seed of the run is.
constexpr std::uint64_t kScaleKey = 0x7363616c65;  // "scale"

using Histogram = std::array<std::int64_t, 256>;
using Numbers = std::array<float, 256>;  ///< what each value of a pixel becomes

PixelScale scale_of(const Histogram& histogram) {
  double total = 0;
  double sum = 0;
  double squares = 0;
  for (std::size_t value = 0; value < histogram.size(); ++value) {
    const double share = static_cast<double>(value) / 255;
    const auto times = static_cast<double>(histogram[value]);
    total += times;
    sum += times * share;
    squares += times * share * share;
  }
  if (total == 0) return {};
  const double mean = sum / total;
  const double variance = squares / total - mean * mean;
  return {.mean = mean, .deviation = variance > 1e-12 ? std::sqrt(variance) : 1};
}

Numbers numbers_of(const PixelScale& scale) {
  Numbers numbers{};
  for (std::size_t value = 0; value < numbers.size(); ++value) {
    const double share = static_cast<double>(value) / 255;
    numbers[value] = static_cast<float>((share - scale.mean) / scale.deviation);
  }
  return numbers;
}

/// One channel of an image.
struct Plane {
  const std::uint8_t* pixels = nullptr;
  std::int64_t height = 0;
  std::int64_t width = 0;

  /// Black outside.
  std::uint8_t at(std::int64_t row, std::int64_t column) const {
    const bool inside = row >= 0 && row < height && column >= 0 && column < width;
    return inside ? pixels[row * width + column] : 0;
  }
};

/// At most kScaleSamples.
std::vector<std::int64_t> some_of(const std::vector<std::int64_t>& samples) {
  const auto count = static_cast<std::int64_t>(samples.size());
  if (count <= kScaleSamples) return samples;
  std::vector<std::int64_t> chosen;
  for (std::int64_t k = 0; k < kScaleSamples; ++k) {
    chosen.push_back(samples[permuted(static_cast<std::uint64_t>(k),
                                      static_cast<std::uint64_t>(count), kScaleKey)]);
  }
  return chosen;
}

void write_moved(const Plane& plane, const Numbers& numbers, const Move& move, float* to) {
  for (std::int64_t row = 0; row < plane.height; ++row) {
    for (std::int64_t column = 0; column < plane.width; ++column) {
      const std::int64_t from = column - move.right;
      *to++ = numbers[plane.at(row - move.down, move.mirrored ? plane.width - 1 - from : from)];
    }
  }
}

}  // namespace

ImageSplit split_images(const ImageSet& images, double validation_fraction) {
  if (!(validation_fraction > 0 && validation_fraction <= 0.5) || images.count < 2) {
    fail_argument({.place = "image batches",
                   .what = "a validation split needs a fraction in (0, 0.5] and two samples",
                   .got = std::to_string(validation_fraction) + " of " +
                          std::to_string(images.count) + " samples"});
  }
  const std::int64_t every =
      std::min<std::int64_t>(std::lround(1 / validation_fraction), images.count);
  ImageSplit split;
  for (std::int64_t i = 0; i < images.count; ++i) {
    (i % every == every - 1 ? split.validation : split.training).push_back(i);
  }
  return split;
}

std::vector<std::int64_t> sorted_by_class(const ImageSet& images,
                                          std::vector<std::int64_t> samples) {
  std::stable_sort(samples.begin(), samples.end(), [&](std::int64_t a, std::int64_t b) {
    return images.labels[at(a)] < images.labels[at(b)];
  });
  return samples;
}

std::vector<std::int64_t> image_indices(std::int64_t training_count, const ImageBatchPlan& plan,
                                        std::int64_t step, Shard shard) {
  const SampleRange range = local_range(plan.global_batch, shard);
  std::vector<std::int64_t> indices;
  if (plan.pieces_per_worker == 0) {
    for (std::int64_t i = range.begin; i < range.end; ++i) {
      indices.push_back(in_epochs(step * plan.global_batch + i, training_count, plan.seed));
    }
    return indices;
  }
  const OwnPieces own(training_count, plan, shard);
  const std::uint64_t key = mix_bits(plan.seed, 2 + static_cast<std::uint64_t>(shard.worker));
  for (std::int64_t i = 0; i < range.count(); ++i) {
    indices.push_back(own.at(in_epochs(step * range.count() + i, own.size, key)));
  }
  return indices;
}

std::vector<PixelScale> pixel_scales(const ImageSet& images,
                                     const std::vector<std::int64_t>& samples) {
  const std::int64_t size = images.pixels_per_channel();
  std::vector<Histogram> histograms(at(images.channels));
  ImageBuffers buffers;
  for (const std::int64_t sample : images.names.empty() ? samples : some_of(samples)) {
    const std::uint8_t* pixels = load_image(images, sample, buffers).pixels;
    for (Histogram& histogram : histograms) {
      for (std::int64_t i = 0; i < size; ++i) ++histogram[pixels[i]];
      pixels += size;
    }
  }
  std::vector<PixelScale> scales;
  for (const Histogram& histogram : histograms) scales.push_back(scale_of(histogram));
  return scales;
}

Batch image_batch(const ImageSet& images, const std::vector<PixelScale>& scales,
                  const std::vector<std::int64_t>& samples, const std::vector<Move>& moves) {
  GOSSAMER_ASSERT(moves.empty() || moves.size() == samples.size());
  const auto count = static_cast<std::int64_t>(samples.size());
  Batch batch{.inputs = at::empty({count, images.channels, images.height, images.width}),
              .targets = at::empty({count}, at::dtype(at::kLong))};
  std::vector<Numbers> numbers;
  for (const PixelScale& scale : scales) numbers.push_back(numbers_of(scale));
  auto* inputs = batch.inputs.mutable_data_ptr<float>();
  auto* targets = batch.targets.mutable_data_ptr<std::int64_t>();
  const std::int64_t size = images.pixels_per_channel();
  ImageBuffers buffers;
  for (std::size_t k = 0; k < samples.size(); ++k) {
    const auto crop = moves.empty() ? std::nullopt : moves[k].crop;
    const std::uint8_t* pixels = load_image(images, samples[k], buffers, crop).pixels;
    for (const Numbers& number : numbers) {
      if (moves.empty()) {
        std::transform(pixels, pixels + size, inputs, [&](auto pixel) { return number[pixel]; });
      } else {
        write_moved({pixels, images.height, images.width}, number, moves[k], inputs);
      }
      pixels += size;
      inputs += size;
    }
    *targets++ = images.labels[at(samples[k])];
  }
  return batch;
}

}  // namespace gossamer
