#include "gossamer/torch/data/task.h"

#include <utility>

#include "gossamer/base/errors.h"
#include "gossamer/torch/data/images.h"
#include "gossamer/torch/data/text.h"
#include "gossamer/torch/data/translation.h"

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
