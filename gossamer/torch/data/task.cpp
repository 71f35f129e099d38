#include "gossamer/torch/data/task.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "gossamer/base/errors.h"
#include "gossamer/base/index.h"
#include "gossamer/data/content.h"
#include "gossamer/torch/data/image_batches.h"
#include "gossamer/torch/data/text.h"
#include "gossamer/torch/data/translation.h"
#include "gossamer/torch/data/validation_batches.h"

namespace gossamer {
namespace {

void check(const TaskArgs& args) {
  for (const auto& [name, value] : {std::pair{"global_batch", args.global_batch},
                                    {"validation_samples", args.validation_samples},
                                    {"validation_batch", args.validation_batch},
                                    {"context", args.context},
                                    {"max_bytes", args.max_bytes}}) {
    if (value > 0) continue;
    fail_argument({.place = "task",
                   .what = std::string(name) + " must be positive",
                   .got = std::to_string(value)});
  }
  if (args.pieces_per_worker >= 0) return;
  fail_argument({.place = "task",
                 .what = "pieces_per_worker must not be negative",
                 .got = std::to_string(args.pieces_per_worker),
                 .remedy = "0 gives every worker the same mixture"});
}

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

Task open_images(const TaskArgs& args) {
  const ImageFiles files = find_images(args.path, args.part);
  auto task = std::make_shared<ImageTask>();
  task->images = read_images(files);
  const ImageSplit split = split_images(task->images, args.validation_fraction);
  task->training =
      args.pieces_per_worker == 0 ? split.training : sorted_by_class(task->images, split.training);
  task->scales = pixel_scales(task->images, split.training);
  task->plan = {.global_batch = args.global_batch,
                .seed = args.seed,
                .pieces_per_worker = args.pieces_per_worker};
  check_augmentation(args.augmentation, task->images.height, task->images.width);
  task->augmentation = args.augmentation;
  const ImageSet& set = task->images;
  Content content;
  content.add(set.pixels);
  content.add(set.labels);
  const auto count = static_cast<std::int64_t>(split.training.size());
  return {
      .kind = InputKind::images,
      .input = {.channels = set.channels,
                .height = set.height,
                .width = set.width,
                .classes = set.classes},
      .training_batch = [task](std::int64_t step, Shard shard) { return task->batch(step, shard); },
      .validation = validation_batches(split.validation, args,
                                       [&](std::span<const std::int64_t> samples, std::int64_t) {
                                         return image_batch(set, task->scales,
                                                            {samples.begin(), samples.end()});
                                       }),
      .steps_per_epoch = std::max<std::int64_t>(1, count / args.global_batch),
      .description = describe(files) + ": " + std::to_string(count) + " images of " +
                     std::to_string(set.classes) + " classes to train on, " +
                     std::to_string(split.validation.size()) + " held out",
      .content = content.text()};
}

}  // namespace

Task open_task(TaskKind kind, const TaskArgs& args) {
  check(args);
  switch (kind) {
    case TaskKind::images:
      return open_images(args);
    case TaskKind::text:
      return open_text(args);
    case TaskKind::translation:
      return open_translation(args);
  }
  __builtin_unreachable();
}

}  // namespace gossamer
