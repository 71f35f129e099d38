#include "gossamer/torch/data/translation.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <mutex>
#include <numeric>

#include "gossamer/base/errors.h"
#include "gossamer/base/index.h"
#include "gossamer/data/content.h"
#include "gossamer/torch/data/pair_batch.h"
#include "gossamer/torch/data/validation_batches.h"

namespace gossamer {
namespace {

constexpr std::int64_t kUsualPieces = 4000;

/// What is trained on, and what is held out.
struct Texts {
  ParallelText training;
  ParallelText validation;
};

Texts read_texts(const TaskArgs& args) {
  Texts texts{.training = read_parallel(args.path, args.target)};
  if (!args.validation.empty()) {
    texts.validation = read_parallel(args.validation, args.validation_target);
    return texts;
  }
  const auto every = static_cast<std::size_t>(std::lround(1 / args.validation_fraction));
  Texts split;
  for (std::size_t i = 0; i < texts.training.sources.size(); ++i) {
    ParallelText& side = i % every == every - 1 ? split.validation : split.training;
    side.sources.push_back(std::move(texts.training.sources[i]));
    side.targets.push_back(std::move(texts.training.targets[i]));
  }
  return split;
}

Vocabulary vocabulary_of(const TaskArgs& args, const ParallelText& training) {
  if (!args.vocabulary_file.empty())
    return Vocabulary::load(args.vocabulary_file, args.vocabulary_trust);
  std::vector<std::string> lines = training.sources;
  lines.insert(lines.end(), training.targets.begin(), training.targets.end());
  return Vocabulary::train(lines, args.vocabulary == 0 ? kUsualPieces : args.vocabulary);
}

/// Leaves the pairs that fit in the context.
void drop_long(std::vector<PiecePair>& pairs, std::int64_t context) {
  std::erase_if(pairs, [&](const PiecePair& pair) { return pair.length() > context; });
}

/// The batches of step after step, epoch after epoch, which are cut when they are asked for.
class PairTask {
 public:
  PairTask(std::vector<PiecePair> pairs, const TokenBatchPlan& plan)
      : pairs_(std::move(pairs)), plan_(plan) {
    for (const PiecePair& pair : pairs_) lengths_.push_back(pair.length());
    epoch_of(0);
  }

  Batch batch(std::int64_t step, Shard shard) {
    Batch batch = pair_batch(pairs_, dealt(global_batch(step), shard));
    batch.seed = noise_seed(plan_.seed, step, shard);
    return batch;
  }

  std::int64_t steps_per_epoch() const { return ends_.front(); }
  std::size_t pairs() const { return pairs_.size(); }

 private:
  using Batches = std::vector<std::vector<std::int64_t>>;

  std::vector<std::int64_t> global_batch(std::int64_t step) {
    const std::lock_guard lock(mutex_);
    const std::int64_t epoch = epoch_of(step);
    const Batches& batches = batches_of(epoch);
    const std::int64_t first = epoch > 0 ? ends_[static_cast<std::size_t>(epoch) - 1] : 0;
    return batches[at(step - first)];
  }

  /// Epochs differ in their numbers of batches, so all before it are counted first.
  std::int64_t epoch_of(std::int64_t step) {
    while (ends_.empty() || step >= ends_.back()) {
      const std::size_t count = batches_of(std::ssize(ends_)).size();
      ends_.push_back((ends_.empty() ? 0 : ends_.back()) + static_cast<std::int64_t>(count));
    }
    return std::ranges::upper_bound(ends_, step) - ends_.begin();
  }

  /// Of two epochs at most, for workers of one process are not all in the same.
  const Batches& batches_of(std::int64_t epoch) {
    if (!kept_.contains(epoch)) {
      if (kept_.size() == 2) kept_.erase(kept_.begin());
      kept_[epoch] = token_batches(lengths_, plan_, epoch);
    }
    return kept_.at(epoch);
  }

  const std::vector<PiecePair> pairs_;
  const TokenBatchPlan plan_;
  std::vector<std::int64_t> lengths_;
  std::mutex mutex_;                      // guards what follows
  std::vector<std::int64_t> ends_;        // of the epochs, in steps
  std::map<std::int64_t, Batches> kept_;  // by epoch
};

/// Their indices.
std::vector<std::int64_t> all_of(const std::vector<PiecePair>& pairs) {
  std::vector<std::int64_t> indices(pairs.size());
  std::iota(indices.begin(), indices.end(), std::int64_t{0});
  return indices;
}

}  // namespace

Task open_translation(const TaskArgs& args) {
  if (args.target.empty() || args.validation.empty() != args.validation_target.empty()) {
    fail_argument({.place = "translation",
                   .what = "text must come in pairs of files",
                   .got = "data '" + args.path.string() + "', target '" + args.target.string() +
                          "', validation '" + args.validation.string() + "', validation_target '" +
                          args.validation_target.string() + "'",
                   .remedy = "give data and target; validation and validation_target, or neither"});
  }
  const Texts texts = read_texts(args);
  const Vocabulary vocabulary = vocabulary_of(args, texts.training);
  Content content;
  for (const ParallelText* side : {&texts.training, &texts.validation}) {
    content.add_lines(side->sources);
    content.add_lines(side->targets);
  }
  content.add(vocabulary.model());
  std::vector<PiecePair> pairs = encode(texts.training, vocabulary);
  const std::size_t read = pairs.size();
  drop_long(pairs, args.context);
  std::vector<PiecePair> held_out = encode(texts.validation, vocabulary);
  cut_long(held_out, args.context);
  const auto task = std::make_shared<PairTask>(
      std::move(pairs), TokenBatchPlan{.tokens = args.global_batch, .seed = args.seed});
  return {
      .kind = InputKind::pairs,
      .input = {.classes = vocabulary.pieces(), .context = args.context},
      .training_batch = [task](std::int64_t step, Shard shard) { return task->batch(step, shard); },
      .validation = validation_batches(all_of(held_out), args,
                                       [&](std::span<const std::int64_t> chosen, std::int64_t) {
                                         return pair_batch(held_out,
                                                           {chosen.begin(), chosen.end()});
                                       }),
      .steps_per_epoch = task->steps_per_epoch(),
      .description = args.path.string() + " to " + args.target.string() + ": " +
                     std::to_string(task->pairs()) + " pairs to train on (" +
                     std::to_string(read - task->pairs()) + " longer than " +
                     std::to_string(args.context) + " pieces left out), " +
                     std::to_string(held_out.size()) + " held out, " +
                     std::to_string(vocabulary.pieces()) + " pieces",
      .content = content.text(),
      .vocabulary = vocabulary};
}

}  // namespace gossamer
