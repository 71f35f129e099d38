#include "gossamer/torch/data/text.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <functional>
#include <set>

#include "gossamer/base/errors.h"
#include "gossamer/base/rng.h"
#include "gossamer/base/test_errors.h"
#include "gossamer/data/token_corpus.h"
#include "gossamer/torch/data/masking.h"
#include "gossamer/torch/data/token_windows.h"

namespace gossamer {
namespace {

namespace fs = std::filesystem;

std::vector<std::int64_t> values(const at::Tensor& tensor) {
  const auto* data = tensor.const_data_ptr<std::int64_t>();
  return {data, data + tensor.numel()};
}

/// Rows of tokens, the same in every row: 0, 1, 2 … again and again.
Batch counting_batch(std::int64_t rows, std::int64_t length, std::int64_t vocabulary) {
  const at::Tensor row = at::arange(length, at::kLong).remainder(vocabulary);
  return {.inputs = row.expand({rows, length}).contiguous(),
          .targets = at::zeros({rows, length}, at::kLong)};
}

/// What happened to the tokens that are asked for.
struct Fates {
  std::int64_t asked = 0;
  std::int64_t hidden = 0;
  std::int64_t kept = 0;
  std::int64_t replaced = 0;
};

/// Checks that what is not asked for is untouched, and that targets are what was there.
Fates fates_of(const Batch& before, const Batch& after, std::int64_t mask) {
  const auto was = values(before.inputs);
  const auto is = values(after.inputs);
  const auto targets = values(after.targets);
  Fates fates;
  for (std::size_t i = 0; i < was.size(); ++i) {
    if (targets[i] == kIgnoredTarget) {
      EXPECT_EQ(is[i], was[i]);
      continue;
    }
    EXPECT_EQ(targets[i], was[i]);
    ++fates.asked;
    fates.hidden += is[i] == mask;
    fates.kept += is[i] == was[i];
    fates.replaced += is[i] != mask && is[i] != was[i];
    EXPECT_LE(is[i], mask);
  }
  return fates;
}

TEST(Masking, HidesReplacesAndKeepsItsShares) {
  const Masking masking{.share = 0.15, .vocabulary = 1000};
  const Batch before = counting_batch(2000, 100, 1000);
  Batch batch = counting_batch(2000, 100, 1000);
  mask_tokens(batch, masking, 5, 0);
  const Fates fates = fates_of(before, batch, 1000);
  EXPECT_EQ(fates.asked, 2000 * 15);
  // Five standard deviations of a binomial count on either side.
  const auto expect_share = [&](std::int64_t count, double share) {
    const auto n = static_cast<double>(fates.asked);
    EXPECT_NEAR(static_cast<double>(count), share * n, 5 * std::sqrt(n * share * (1 - share)));
  };
  expect_share(fates.hidden, 0.8);
  expect_share(fates.replaced, 0.1 * 0.999);  // one in a thousand is replaced by itself
  expect_share(fates.kept, 0.1 + 0.1 * 0.001);
}

TEST(Masking, AsksForEveryPositionEquallyOften) {
  Batch batch = counting_batch(4000, 20, 20);
  mask_tokens(batch, {.share = 0.25, .vocabulary = 20}, 5, 0);
  const at::Tensor asked = batch.targets.ne(kIgnoredTarget).sum(0);
  const double deviation = std::sqrt(4000 * 0.25 * 0.75);
  for (const std::int64_t count : values(asked)) {
    EXPECT_NEAR(static_cast<double>(count), 1000, 5 * deviation);
  }
}

TEST(Masking, AsksForAtLeastOneTokenAndAtMostAll) {
  for (const auto& [share, asked] : {std::pair{0.001, 1}, {0.25, 2}, {0.999, 8}}) {
    Batch batch = counting_batch(1, 8, 8);
    mask_tokens(batch, {.share = share, .vocabulary = 8}, 1, 0);
    EXPECT_EQ(batch.targets.ne(kIgnoredTarget).sum().item<std::int64_t>(), asked) << share;
  }
}

TEST(Masking, OfARowFollowsFromKeyAndNumber) {
  const auto masked = [](std::uint64_t key, std::int64_t first, std::int64_t rows) {
    Batch batch = counting_batch(rows, 40, 256);
    mask_tokens(batch, {}, key, first);
    return batch;
  };
  const Batch whole = masked(3, 0, 6);
  EXPECT_TRUE(whole.inputs.equal(masked(3, 0, 6).inputs));
  EXPECT_TRUE(whole.inputs.narrow(0, 4, 2).equal(masked(3, 4, 2).inputs));
  EXPECT_TRUE(whole.targets.narrow(0, 4, 2).equal(masked(3, 4, 2).targets));
  EXPECT_FALSE(whole.targets.equal(masked(4, 0, 6).targets));
  EXPECT_FALSE(whole.targets[0].equal(whole.targets[1]));
}

/// A file of lines with indentation, runs of spaces and empty lines, which goes with the test.
class TextFile : public testing::Test {
 protected:
  TextFile() : path_(fs::temp_directory_path() / ("gossamer_text_" + std::to_string(getpid()))) {
    Rng rng(7);
    for (int i = 0; i < 600; ++i) {
      text_ += i % 5 == 0 ? "\n" : "";
      text_.append(rng.below(3) * 4, ' ');
      text_ += "take  " + std::to_string(rng.below(50)) + " steps";
      text_ += i % 3 == 0 ? " north, north-east\n" : " and turn\n";
    }
    std::ofstream(path_, std::ios::binary) << text_;
  }
  ~TextFile() override { fs::remove(path_); }

  TaskArgs args() const {
    return {.path = path_, .global_batch = 16, .seed = 9, .validation_samples = 20, .context = 32};
  }
  TaskArgs masked() const {
    TaskArgs changed = args();
    changed.objective = Objective::masked;
    return changed;
  }
  TaskArgs pieces() const {
    TaskArgs changed = args();
    changed.vocabulary = 80;
    return changed;
  }
  std::vector<std::uint8_t> bytes() const { return {text_.begin(), text_.end()}; }

  std::string text_;
  const fs::path path_;
};

/// The bytes that follow from the definition of the windows: sample i of a step begins at a place
/// drawn from (seed, step, i), and is asked for the byte after each.
TEST_F(TextFile, AsBytesIsWhatItSaysByDefault) {
  const Task task = open_text(args());
  EXPECT_EQ(task.kind, InputKind::tokens);
  EXPECT_EQ(task.input.classes, 256);
  EXPECT_FALSE(task.vocabulary.has_value());
  const auto size = static_cast<std::int64_t>(text_.size());
  const WindowStarts starts(split_corpus(size, {}).training, 32);
  for (const std::int64_t step : {0, 3}) {
    const Batch batch = task.training_batch(step, {});
    for (std::int64_t i = 0; i < 16; ++i) {
      Rng rng(mix_bits(9, static_cast<std::uint64_t>(step)), static_cast<std::uint64_t>(i));
      const auto place = rng.below(static_cast<std::uint64_t>(starts.count()));
      const std::int64_t at = starts.at(static_cast<std::int64_t>(place));
      for (std::int64_t k = 0; k < 32; ++k) {
        const auto byte = [&](std::int64_t offset) {
          return static_cast<std::uint8_t>(text_[static_cast<std::size_t>(at + offset)]);
        };
        ASSERT_EQ(batch.inputs[i][k].item<std::int64_t>(), byte(k));
        ASSERT_EQ(batch.targets[i][k].item<std::int64_t>(), byte(k + 1));
      }
    }
  }
}

TEST_F(TextFile, GlobalBatchesAreTheSameForEveryNumberOfWorkers) {
  for (TaskArgs given : {args(), masked(), pieces()}) {
    const Task task = open_text(given);
    for (const std::int64_t step : {0, 5}) {
      const Batch whole = task.training_batch(step, {});
      for (const int workers : {2, 4, 5}) {
        std::vector<at::Tensor> inputs;
        std::vector<at::Tensor> targets;
        for (int worker = 0; worker < workers; ++worker) {
          const Batch part = task.training_batch(step, {.worker = worker, .workers = workers});
          inputs.push_back(part.inputs);
          targets.push_back(part.targets);
        }
        EXPECT_TRUE(at::cat(inputs).equal(whole.inputs)) << workers;
        EXPECT_TRUE(at::cat(targets).equal(whole.targets)) << workers;
      }
    }
  }
}

TEST_F(TextFile, MasksChangeByStepAndSeedInTrainingOnly) {
  const Task task = open_text(masked());
  TaskArgs other_seed = masked();
  other_seed.seed = 10;
  const Task other = open_text(other_seed);
  EXPECT_EQ(task.kind, InputKind::masked_tokens);
  EXPECT_EQ(task.input.classes, 257);
  const auto places = [](const Batch& batch) { return batch.targets.ne(kIgnoredTarget); };
  const Batch batch = task.training_batch(4, {});
  EXPECT_TRUE(batch.inputs.equal(task.training_batch(4, {}).inputs));
  EXPECT_FALSE(places(batch).equal(places(task.training_batch(5, {}))));
  EXPECT_FALSE(places(batch).equal(places(other.training_batch(4, {}))));
  ASSERT_EQ(task.validation.size(), other.validation.size());
  for (std::size_t k = 0; k < task.validation.size(); ++k) {
    EXPECT_TRUE(task.validation[k].inputs.equal(other.validation[k].inputs));
    EXPECT_TRUE(task.validation[k].targets.equal(other.validation[k].targets));
  }
}

TEST_F(TextFile, MaskedValidationDoesNotDependOnHowItIsCutIntoBatches) {
  TaskArgs small = masked();
  small.validation_batch = 3;
  const auto joined = [](const Task& task) {
    std::vector<at::Tensor> inputs;
    for (std::size_t k = 0; k < task.validation.size(); ++k) {
      inputs.push_back(task.validation[k].inputs);
    }
    return at::cat(inputs);
  };
  EXPECT_TRUE(joined(open_text(masked())).equal(joined(open_text(small))));
}

TEST_F(TextFile, WorkersHaveNoiseOfTheirOwnInEveryStep) {
  const Task task = open_text(args());
  std::set<std::uint64_t> seeds;
  for (std::int64_t step = 0; step < 5; ++step) {
    for (int worker = 0; worker < 4; ++worker) {
      EXPECT_TRUE(seeds.insert(task.training_batch(step, {worker, 4}).seed).second);
    }
  }
}

TEST_F(TextFile, PiecesGiveBackTheText) {
  const CorpusSplit split = split_corpus(std::ssize(text_), {});
  const TokenCorpus corpus =
      piece_tokens(bytes(), split, learn_pieces(bytes(), split.training, 80));
  EXPECT_EQ(corpus.vocabulary, 80);
  EXPECT_LT(corpus.tokens.size(), text_.size());
  const auto text_of = [&](const CorpusSpan& span) {
    std::string text;
    std::vector<std::int64_t> line;
    for (std::int64_t i = span.begin; i < span.end; ++i) {
      const std::int64_t token = corpus.tokens[static_cast<std::size_t>(i)];
      if (token != Vocabulary::kEnd) {
        line.push_back(token);
        continue;
      }
      text += corpus.pieces->decode(line) + "\n";
      line.clear();
    }
    return text + corpus.pieces->decode(line);
  };
  const auto expect_same = [&](const std::vector<CorpusSpan>& tokens,
                               const std::vector<CorpusSpan>& in_bytes) {
    ASSERT_EQ(tokens.size(), in_bytes.size());
    for (std::size_t k = 0; k < tokens.size(); ++k) {
      const auto begin = static_cast<std::size_t>(in_bytes[k].begin);
      const auto size = static_cast<std::size_t>(in_bytes[k].end) - begin;
      EXPECT_EQ(text_of(tokens[k]), text_.substr(begin, size));
    }
  };
  expect_same(corpus.split.training, split.training);
  expect_same(corpus.split.validation, split.validation);
}

TEST_F(TextFile, PiecesAreLearnedFromTheTrainingPartOnly) {
  const Task task = open_text(pieces());
  ASSERT_TRUE(task.vocabulary.has_value());
  EXPECT_EQ(task.input.classes, 80);
  const CorpusSplit split = split_corpus(std::ssize(text_), {});
  for (const CorpusSpan& span : split.validation) {
    std::reverse(text_.begin() + span.begin, text_.begin() + span.end);
  }
  std::ofstream(path_, std::ios::binary) << text_;
  EXPECT_EQ(open_text(pieces()).vocabulary->model(), task.vocabulary->model());
}

TEST_F(TextFile, AVocabularyFileGivesTheSamePieces) {
  const Task learned = open_text(pieces());
  const fs::path file = path_.string() + ".model";
  learned.vocabulary->save(file);
  TaskArgs given = args();
  given.vocabulary_file = file;
  const Task task = open_text(given);
  EXPECT_EQ(task.description, learned.description);
  EXPECT_TRUE(task.training_batch(1, {}).inputs.equal(learned.training_batch(1, {}).inputs));
  fs::remove(file.string() + ".seal");
  given.vocabulary_trust = Trust::all;
  EXPECT_EQ(open_text(given).description, learned.description);
  fs::remove(file);
}

TEST_F(TextFile, MaskedPiecesHaveTheMaskBehindTheVocabulary) {
  TaskArgs given = pieces();
  given.objective = Objective::masked;
  const Task task = open_text(given);
  EXPECT_EQ(task.input.classes, 81);
  EXPECT_EQ(task.training_batch(0, {}).inputs.max().item<std::int64_t>(), 80);
}

TEST_F(TextFile, ImpossibleSharesAreRefused) {
  TaskArgs wrong = args();
  for (const double share : {0.0, -0.1, 1.0, std::nan("")}) {
    wrong = masked();
    wrong.mask_share = share;
    const std::string range = message_of<std::invalid_argument>([&] { open_text(wrong); });
    EXPECT_NE(range.find("mask_share"), std::string::npos) << range;
  }
  wrong = args();
  wrong.vocabulary = 100000;
  EXPECT_THROW(open_text(wrong), std::invalid_argument);
}

}  // namespace
}  // namespace gossamer
