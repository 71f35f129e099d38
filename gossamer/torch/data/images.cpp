#include "gossamer/torch/data/images.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "gossamer/base/index.h"
#include "gossamer/torch/data/image_batches.h"
#include "gossamer/torch/data/read_ahead.h"
#include "gossamer/torch/data/validation_batches.h"

namespace gossamer {
namespace {

struct ImageTask {
  ImageSet images;
  std::vector<PixelScale> scales;
  std::vector<std::int64_t> training;
  ImageBatchPlan plan;
  Augmentation augmentation;

  Batch batch(std::int64_t step, Shard shard) const {
    auto samples = image_indices(static_cast<std::int64_t>(training.size()), plan, step, shard);
    for (std::int64_t& sample : samples) sample = training[at(sample)];
    return image_batch(images, scales, samples, moves_of(augmentation, plan.seed, step, samples));
  }
};

using SharedTask = std::shared_ptr<const ImageTask>;

/// Images that are decoded are read ahead; those in memory cost nothing to read.
std::function<Batch(std::int64_t, Shard)> batches_of(const SharedTask& task, int steps_ahead) {
  const auto make = [task](std::int64_t step, Shard shard) { return task->batch(step, shard); };
  if (task->images.names.empty() || steps_ahead == 0) return make;
  const auto ahead = std::make_shared<ReadAhead>(make, steps_ahead);
  return [ahead](std::int64_t step, Shard shard) { return ahead->batch(step, shard); };
}

/// At most so many of the samples, evenly spread.
std::vector<std::int64_t> spread(const std::vector<std::int64_t>& samples, std::int64_t most) {
  const auto count = static_cast<std::int64_t>(samples.size());
  if (count <= most) return samples;
  std::vector<std::int64_t> chosen;
  for (std::int64_t k = 0; k < most; ++k) chosen.push_back(samples[at(k * count / most)]);
  return chosen;
}

/// Decoded whenever they are asked for: hundreds of photographs would fill the memory.
BatchList validation_of(const SharedTask& task, const std::vector<std::int64_t>& held_out,
                        const TaskArgs& args) {
  // Files are sorted by class: the first of them would be of few classes.
  const bool is_sorted = !task->images.names.empty();
  const std::vector<std::int64_t> samples =
      is_sorted ? spread(held_out, args.validation_samples) : held_out;
  const auto make = [task](const std::vector<std::int64_t>& own) {
    return image_batch(task->images, task->scales, own);
  };
  std::vector<std::vector<std::int64_t>> parts;
  cut_validation(samples, args, [&](std::span<const std::int64_t> own, std::int64_t) {
    parts.emplace_back(own.begin(), own.end());
  });
  const std::size_t count = parts.size();
  return {count, [make, parts = std::move(parts)](std::size_t k) { return make(parts[k]); }};
}

}  // namespace

Task open_images(const TaskArgs& args) {
  const ImageFiles files = find_images(args.path, args.part);
  const auto task = std::make_shared<ImageTask>();
  ImageSet& set = task->images;
  set = read_images(files);
  std::string content = content_of(set);
  set_image_size(set, args.image_size);
  check_augmentation(args.augmentation, set.height, set.width);
  const ImageSplit split = split_images(set, args.validation_fraction);
  task->training =
      args.pieces_per_worker == 0 ? split.training : sorted_by_class(set, split.training);
  task->scales = pixel_scales(set, split.training);
  task->plan = {.global_batch = args.global_batch,
                .seed = args.seed,
                .pieces_per_worker = args.pieces_per_worker};
  task->augmentation = args.augmentation;
  const auto count = static_cast<std::int64_t>(split.training.size());
  return {.kind = InputKind::images,
          .input = {.channels = set.channels,
                    .height = set.height,
                    .width = set.width,
                    .classes = set.classes},
          .training_batch = batches_of(task, args.read_ahead),
          .validation = validation_of(task, split.validation, args),
          .steps_per_epoch = std::max<std::int64_t>(1, count / args.global_batch),
          .description = describe(files) + ": " + std::to_string(count) + " images of " +
                         std::to_string(set.classes) + " classes to train on, " +
                         std::to_string(split.validation.size()) + " held out",
          .content = std::move(content)};
}

}  // namespace gossamer
