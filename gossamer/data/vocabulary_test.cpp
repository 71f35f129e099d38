#include "gossamer/data/vocabulary.h"

#include <gtest/gtest.h>

#include "gossamer/base/errors.h"
#include "gossamer/base/scratch_folder.h"
#include "gossamer/base/test_errors.h"
#include "gossamer/data/data_fixture.h"

namespace gossamer {
namespace {

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
  const ScratchFolder folder;
  const auto path = folder.put("no_model", "this is no model");
  EXPECT_THROW(Vocabulary::load(path, Trust::all), IoError);
  // One piece, a normal one, without a letter: the library throws.
  const std::string no_letter("\n\x09\n\0\x15\0\0\0\0\x18\1", 11);
  const auto empty = folder.put("empty_piece", no_letter);
  EXPECT_THROW(Vocabulary::load(empty, Trust::all), IoError);
}

TEST(Vocabulary, OfAnOldSentencePieceIsLoadedWithItsSealOnly) {
  for (const char* version : {"0.2.1", "0.2.10", "0.3.0", "1.0.0"}) {
    EXPECT_TRUE(is_sound_sentencepiece(version)) << version;
  }
  for (const char* version : {"", "0.1.97", "0.2.0", "0.2", "unknown"}) {
    EXPECT_FALSE(is_sound_sentencepiece(version)) << version;
  }
  const Vocabulary vocabulary = vocabulary_of(spelled_backwards(100));
  const ScratchFolder folder;
  const std::filesystem::path path = folder / "sealed";
  const std::filesystem::path seal = folder / "sealed.seal";
  vocabulary.save(path);
  EXPECT_EQ(Vocabulary::load(path).model(), vocabulary.model());
  const bool asks = !is_sound_sentencepiece(GOSSAMER_SENTENCEPIECE_VERSION);
  folder.put("sealed", vocabulary.model() + ' ');
  if (asks) {
    EXPECT_THROW(Vocabulary::load(path), IoError);
  }
  vocabulary.save(path);
  std::filesystem::remove(seal);
  if (asks) {
    const std::string said = message_of<IoError>([&] { Vocabulary::load(path); });
    EXPECT_NE(said.find("say with --trust-vocabulary"), std::string::npos) << said;
  }
  EXPECT_EQ(Vocabulary::load(path, Trust::all).model(), vocabulary.model());
}

}  // namespace
}  // namespace gossamer
