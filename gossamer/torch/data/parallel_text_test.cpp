#include "gossamer/torch/data/parallel_text.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <numeric>
#include <set>

#include "gossamer/base/errors.h"
#include "gossamer/base/index.h"
#include "gossamer/base/rng.h"
#include "gossamer/base/test_errors.h"
#include "gossamer/torch/data/translation.h"

namespace gossamer {
namespace {

namespace fs = std::filesystem;

/// A tiny language whose translation spells every word backwards.
ParallelText spelled_backwards(int lines) {
  const std::vector<std::string> words = {"one", "two", "red", "blue", "dog", "house", "runs"};
  ParallelText text;
  Rng rng(5);
  for (int i = 0; i < lines; ++i) {
    std::string source;
    std::string target;
    const std::uint64_t length = 2 + rng.below(9);
    for (std::uint64_t k = 0; k < length; ++k) {
      const std::string& word = words[rng.below(words.size())];
      if (k > 0) source.push_back(' ');
      if (k > 0) target.push_back(' ');
      source += word;
      target.append(word.rbegin(), word.rend());
    }
    text.sources.push_back(source);
    text.targets.push_back(target);
  }
  return text;
}

Vocabulary vocabulary_of(const ParallelText& text, std::int64_t pieces = 60) {
  std::vector<std::string> lines = text.sources;
  lines.insert(lines.end(), text.targets.begin(), text.targets.end());
  return Vocabulary::train(lines, pieces);
}

TEST(Vocabulary, GivesBackWhatItWasGiven) {
  const ParallelText text = spelled_backwards(100);
  const Vocabulary vocabulary = vocabulary_of(text);
  EXPECT_EQ(vocabulary.pieces(), 60);
  for (const std::string& line : text.targets) {
    const auto pieces = vocabulary.encode(line);
    EXPECT_EQ(vocabulary.decode(pieces), line);
    for (const std::int64_t piece : pieces) EXPECT_GT(piece, Vocabulary::kEnd);
  }
}

TEST(Vocabulary, IsAFunctionOfItsText) {
  const ParallelText text = spelled_backwards(100);
  EXPECT_EQ(vocabulary_of(text).model(), vocabulary_of(text).model());
}

TEST(Vocabulary, SaysWhyTextOrFilesWillNotDo) {
  const std::vector<std::string> little{"a b", "b a"};
  EXPECT_THROW(Vocabulary::train(little, 4000), std::invalid_argument);
  EXPECT_THROW(Vocabulary::load("/nowhere/vocabulary.model"), IoError);
  const fs::path path = fs::temp_directory_path() / ("no_model_" + std::to_string(getpid()));
  std::ofstream(path) << "this is no model";
  EXPECT_THROW(Vocabulary::load(path, Trust::all), IoError);
  fs::remove(path);
}

TEST(Vocabulary, OfAnOldSentencePieceIsLoadedWithItsSealOnly) {
  for (const char* version : {"0.2.1", "0.2.10", "0.3.0", "1.0.0"}) {
    EXPECT_TRUE(is_sound_sentencepiece(version)) << version;
  }
  for (const char* version : {"", "0.1.97", "0.2.0", "0.2", "unknown"}) {
    EXPECT_FALSE(is_sound_sentencepiece(version)) << version;
  }
  const Vocabulary vocabulary = vocabulary_of(spelled_backwards(100));
  const fs::path path = fs::temp_directory_path() / ("sealed_" + std::to_string(getpid()));
  const fs::path seal = path.string() + ".seal";
  vocabulary.save(path);
  EXPECT_EQ(Vocabulary::load(path).model(), vocabulary.model());
  const bool asks = !is_sound_sentencepiece(GOSSAMER_SENTENCEPIECE_VERSION);
  std::ofstream(path, std::ios::binary) << vocabulary.model() << ' ';
  if (asks) {
    EXPECT_THROW(Vocabulary::load(path), IoError);
  }
  vocabulary.save(path);
  fs::remove(seal);
  if (asks) {
    const std::string said = message_of<IoError>([&] { Vocabulary::load(path); });
    EXPECT_NE(said.find("say with --trust-vocabulary"), std::string::npos) << said;
  }
  EXPECT_EQ(Vocabulary::load(path, Trust::all).model(), vocabulary.model());
  fs::remove(path);
}

TEST(PairBatch, ShiftsTargetsAndFillsUp) {
  const std::vector<PiecePair> pairs{{{11, 12}, {21, 22, 23}}, {{13}, {24}}};
  const Batch batch = pair_batch(pairs, {1, 0});
  const auto rows = [](const at::Tensor& tensor) {
    const auto* data = tensor.const_data_ptr<std::int64_t>();
    return std::vector<std::int64_t>(data, data + tensor.numel());
  };
  EXPECT_EQ(rows(batch.sources), (std::vector<std::int64_t>{13, 3, 0, 11, 12, 3}));
  EXPECT_EQ(rows(batch.inputs), (std::vector<std::int64_t>{2, 24, 0, 0, 2, 21, 22, 23}));
  EXPECT_EQ(rows(batch.targets), (std::vector<std::int64_t>{24, 3, -100, -100, 21, 22, 23, 3}));
}

TEST(TokenBatches, HaveEveryPairOnceAndNoTokenTooMany) {
  for (const std::int64_t count : {1, 7, 100, 1000}) {
    std::vector<std::int64_t> lengths;
    Rng rng(3, static_cast<std::uint64_t>(count));
    for (std::int64_t i = 0; i < count; ++i)
      lengths.push_back(1 + static_cast<std::int64_t>(rng.below(40)));
    for (const std::int64_t epoch : {0, 1}) {
      std::set<std::int64_t> seen;
      for (const auto& batch : token_batches(lengths, {.tokens = 120, .seed = 9}, epoch)) {
        std::int64_t longest = 0;
        for (const std::int64_t pair : batch) {
          EXPECT_TRUE(seen.insert(pair).second);
          longest = std::max(longest, lengths[at(pair)]);
        }
        EXPECT_LE(longest * std::ssize(batch), 120);
        EXPECT_FALSE(batch.empty());
      }
      EXPECT_EQ(std::ssize(seen), count);
    }
  }
}

TEST(TokenBatches, NoneIsTinyWhereManyFit) {
  std::vector<std::int64_t> lengths(1001, 10);
  for (const auto& batch : token_batches(lengths, {.tokens = 1000}, 0)) {
    EXPECT_GE(batch.size(), 50u);
  }
}

TEST(TokenBatches, DifferBySeedAndEpochOnly) {
  std::vector<std::int64_t> lengths;
  for (std::int64_t i = 0; i < 500; ++i) lengths.push_back(1 + i % 37);
  const TokenBatchPlan plan{.tokens = 200, .seed = 4};
  EXPECT_EQ(token_batches(lengths, plan, 2), token_batches(lengths, plan, 2));
  EXPECT_NE(token_batches(lengths, plan, 2), token_batches(lengths, plan, 3));
  EXPECT_NE(token_batches(lengths, plan, 2), token_batches(lengths, {.tokens = 200, .seed = 5}, 2));
}

TEST(TokenBatches, RefuseWhatFitsNowhere) {
  EXPECT_THROW(token_batches({3, 50}, {.tokens = 49}, 0), std::invalid_argument);
  EXPECT_THROW(dealt({1, 2, 3}, {0, 4}), std::invalid_argument);
}

TEST(TokenBatches, WorkersTogetherHaveTheGlobalBatch) {
  const std::vector<std::int64_t> batch{4, 8, 15, 16, 23, 42, 108};
  for (int workers = 1; workers <= 7; ++workers) {
    std::vector<std::int64_t> all;
    for (int worker = 0; worker < workers; ++worker) {
      const auto own = dealt(batch, {worker, workers});
      all.insert(all.end(), own.begin(), own.end());
    }
    std::ranges::sort(all);
    EXPECT_EQ(all, batch);
  }
}

/// A folder with text files that disappears with the test.
class TranslationFiles : public testing::Test {
 protected:
  TranslationFiles()
      : folder_(fs::temp_directory_path() / ("gossamer_pairs_" + std::to_string(getpid()))) {
    fs::create_directories(folder_);
  }
  ~TranslationFiles() override { fs::remove_all(folder_); }

  fs::path write(const std::string& name, const std::vector<std::string>& lines,
                 const char* end = "\n") const {
    std::ofstream file(folder_ / name, std::ios::binary);
    for (const std::string& line : lines) file << line << end;
    return folder_ / name;
  }

  TaskArgs args(const ParallelText& text) const {
    return {.path = write("source", text.sources),
            .global_batch = 256,
            .validation_fraction = 0.1,
            .context = 32,
            .target = write("target", text.targets),
            .vocabulary = 60};
  }

  fs::path folder_;
};

TEST_F(TranslationFiles, LinesEndInEitherWay) {
  const std::vector<std::string> lines{"a", "", "b c"};
  EXPECT_EQ(read_lines(write("unix", lines)), lines);
  EXPECT_EQ(read_lines(write("dos", lines, "\r\n")), lines);
}

TEST_F(TranslationFiles, FilesOfDifferentLengthsAreRefused) {
  EXPECT_THROW(read_parallel(write("two", {"a", "b"}), write("one", {"a"})), std::invalid_argument);
  EXPECT_THROW(read_parallel(write("none", {}), write("none", {})), std::invalid_argument);
}

TEST_F(TranslationFiles, TheTaskGivesEveryWorkerItsPartAndItsNoise) {
  const Task task = open_translation(args(spelled_backwards(200)));
  EXPECT_EQ(task.kind, InputKind::pairs);
  EXPECT_EQ(task.input.classes, 60);
  ASSERT_TRUE(task.vocabulary.has_value());
  std::set<std::uint64_t> seeds;
  for (std::int64_t step = 0; step < 3 * task.steps_per_epoch; ++step) {
    std::int64_t pairs = 0;
    for (int worker = 0; worker < 4; ++worker) {
      const Batch batch = task.training_batch(step, {worker, 4});
      EXPECT_TRUE(seeds.insert(batch.seed).second);
      pairs += batch.sources.size(0);
      EXPECT_TRUE(task.training_batch(step, {worker, 4}).inputs.equal(batch.inputs));
    }
    EXPECT_EQ(pairs, task.training_batch(step, {0, 1}).sources.size(0));
  }
  std::int64_t held_out = 0;
  for (const Batch& batch : task.validation) held_out += batch.sources.size(0);
  EXPECT_EQ(held_out, 20);
}

TEST_F(TranslationFiles, BatchesAreTheSameInWhateverOrderTheyAreAskedFor) {
  const Task task = open_translation(args(spelled_backwards(200)));
  const Task other = open_translation(args(spelled_backwards(200)));
  const std::int64_t steps = 5 * task.steps_per_epoch;
  std::vector<torch::Tensor> forwards;
  for (std::int64_t step = 0; step < steps; ++step) {
    forwards.push_back(task.training_batch(step, {0, 1}).inputs);
  }
  EXPECT_FALSE(forwards.front().equal(forwards[at(task.steps_per_epoch)]));
  for (std::int64_t step = steps - 1; step >= 0; --step) {
    const Batch batch = other.training_batch(step, {0, 1});
    EXPECT_TRUE(batch.inputs.equal(forwards[at(step)])) << step;
  }
}

TEST_F(TranslationFiles, LongPairsAreLeftOutOfTrainingAndCutInValidation) {
  ParallelText text = spelled_backwards(50);
  std::string endless;
  for (int i = 0; i < 200; ++i) endless += "dog house ";
  text.sources[3] = endless;  // trained on
  text.sources[9] = endless;  // held out: every tenth
  const Task task = open_translation(args(text));
  EXPECT_NE(task.description.find("44 pairs to train on (1 longer"), std::string::npos)
      << task.description;
  for (const Batch& batch : task.validation) EXPECT_LE(batch.sources.size(1), 32);
}

TEST_F(TranslationFiles, HalfAPairOfFilesIsRefused) {
  TaskArgs half = args(spelled_backwards(20));
  half.validation = half.path;
  EXPECT_THROW(open_translation(half), std::invalid_argument);
  half.validation.clear();
  half.target.clear();
  EXPECT_THROW(open_translation(half), std::invalid_argument);
}

}  // namespace
}  // namespace gossamer
