#include "gossamer/torch/data/text.h"

#include <algorithm>
#include <memory>
#include <string_view>
#include <utility>

#include "gossamer/base/errors.h"
#include "gossamer/base/rng.h"
#include "gossamer/data/content.h"
#include "gossamer/data/token_corpus.h"
#include "gossamer/torch/data/masking.h"
#include "gossamer/torch/data/token_windows.h"
#include "gossamer/torch/data/validation_batches.h"

namespace gossamer {
namespace {

/// Keeps the masks of a step apart from the windows that are drawn for it.
constexpr std::uint64_t kMasks = 0x6d61736b73;
/// The masks of validation are the same for every run, so that runs can be compared.
constexpr std::uint64_t kValidationMasks = 0;

bool is_masked(const TaskArgs& args) { return args.objective == Objective::masked; }

/// Adds the text that was read to `content`.
TokenCorpus read_tokens(const TaskArgs& args, Content& content) {
  const auto text =
      read_corpus(args.path, {.suffixes = args.suffixes, .max_bytes = args.max_bytes});
  content.add(text);
  const CorpusSplit split = split_corpus(static_cast<std::int64_t>(text.size()),
                                         {.validation_fraction = args.validation_fraction});
  if (!args.vocabulary_file.empty()) {
    return piece_tokens(text, split, Vocabulary::load(args.vocabulary_file, args.vocabulary_trust));
  }
  if (args.vocabulary == 0) return byte_tokens(text, split);
  return piece_tokens(text, split, learn_pieces(text, split.training, args.vocabulary));
}

/// Whose masks a batch has.
struct MaskKey {
  std::uint64_t key = 0;
  std::int64_t first_row = 0;
};

struct TextTask {
  TokenCorpus corpus;
  WindowStarts starts;
  TaskArgs args;
  std::optional<Masking> masking;  // none: every token asks for the next

  Batch windows(std::span<const std::int64_t> offsets, const MaskKey& masks) const {
    Batch batch = token_batch(corpus.tokens, args.context, offsets);
    if (masking) mask_tokens(batch, *masking, masks.key, masks.first_row);
    return batch;
  }

  Batch training_batch(std::int64_t step, Shard shard) const {
    const std::uint64_t key = mix_bits(args.seed, static_cast<std::uint64_t>(step));
    Batch batch = windows(
        window_offsets(starts, args.global_batch, args.seed, step, shard),
        {.key = mix_bits(key, kMasks), .first_row = local_range(args.global_batch, shard).begin});
    batch.seed = noise_seed(args.seed, step, shard);
    return batch;
  }

  std::vector<Batch> validation() const {
    const WindowStarts long_enough(corpus.split.validation, args.context);  // throws if none is
    const std::vector<std::int64_t> all =
        fixed_offsets(corpus.split.validation, args.context, args.validation_samples);
    return validation_batches(
        all, args, [&](std::span<const std::int64_t> offsets, std::int64_t first) {
          return windows(offsets, {.key = kValidationMasks, .first_row = first});
        });
  }
};

std::int64_t total(const std::vector<CorpusSpan>& spans) {
  std::int64_t sum = 0;
  for (const CorpusSpan& span : spans) sum += span.end - span.begin;
  return sum;
}

std::string describe(const TaskArgs& args, const TokenCorpus& corpus) {
  std::string text = args.path.string() + ": " + std::to_string(total(corpus.split.training));
  text += corpus.pieces ? " pieces" : " bytes";
  text += " to train on, " + std::to_string(total(corpus.split.validation)) + " held out";
  if (corpus.pieces) text += ", a vocabulary of " + std::to_string(corpus.vocabulary);
  return text;
}

}  // namespace

Task open_text(const TaskArgs& args) {
  const bool masked = is_masked(args);
  if (masked) check_masking({.share = args.mask_share});
  Content content;
  TokenCorpus corpus = read_tokens(args, content);
  if (corpus.pieces) content.add(corpus.pieces->model());
  std::optional<Masking> masking;
  if (masked) masking = Masking{.share = args.mask_share, .vocabulary = corpus.vocabulary};
  const std::int64_t tokens = total(corpus.split.training);
  const WindowStarts starts(corpus.split.training, args.context);
  const auto task = std::make_shared<const TextTask>(
      TextTask{.corpus = std::move(corpus), .starts = starts, .args = args, .masking = masking});
  const std::int64_t mask_tokens = masked ? 1 : 0;
  return {.kind = masked ? InputKind::masked_tokens : InputKind::tokens,
          .input = {.classes = task->corpus.vocabulary + mask_tokens, .context = args.context},
          .training_batch = [task](std::int64_t step,
                                   Shard shard) { return task->training_batch(step, shard); },
          .validation = task->validation(),
          .steps_per_epoch = std::max<std::int64_t>(1, tokens / (args.global_batch * args.context)),
          .description = describe(args, task->corpus),
          .content = content.text(),
          .vocabulary = task->corpus.pieces};
}

}  // namespace gossamer
