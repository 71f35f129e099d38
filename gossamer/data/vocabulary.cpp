#include "gossamer/data/vocabulary.h"

#include <sentencepiece_processor.h>
#include <sentencepiece_trainer.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdio>
#include <unordered_map>

#include "gossamer/base/disk.h"
#include "gossamer/base/errors.h"
#include "gossamer/data/read_bytes.h"

namespace gossamer {
namespace {

/// Hands lines to SentencePiece one by one.
class Lines final : public sentencepiece::SentenceIterator {
 public:
  explicit Lines(std::span<const std::string> lines) : lines_(lines) {}
  bool done() const override { return next_ == lines_.size(); }
  void Next() override { ++next_; }
  const std::string& value() const override { return lines_[next_]; }
  sentencepiece::util::Status status() const override { return {}; }

 private:
  std::span<const std::string> lines_;
  std::size_t next_ = 0;
};

using Settings = std::unordered_map<std::string, std::string>;

Settings settings(std::int64_t pieces, Normalization normalization) {
  Settings all{{"model_type", "bpe"},
               {"vocab_size", std::to_string(pieces)},
               {"character_coverage", "1.0"},
               {"pad_id", "0"},
               {"unk_id", "1"},
               {"bos_id", "2"},
               {"eos_id", "3"},
               {"num_threads", "1"},
               {"minloglevel", "2"}};
  if (normalization == Normalization::nfkc) return all;
  all["normalization_rule_name"] = "identity";
  all["remove_extra_whitespaces"] = "false";
  all["allow_whitespace_only_pieces"] = "true";  // indentation is one piece
  all["max_sentence_length"] = "1073741824";     // some texts are a single line
  return all;
}

constexpr std::string_view kVersion = GOSSAMER_SENTENCEPIECE_VERSION;  // by the build

std::filesystem::path seal_of(std::filesystem::path path) { return path += ".seal"; }

std::string seal_for(std::span<const std::byte> model) {
  char text[40];
  std::snprintf(text, sizeof text, "%zu bytes, crc32 %08x\n", model.size(), crc32_of(model));
  return text;
}

bool is_sealed(const std::filesystem::path& path, std::span<const std::uint8_t> model) {
  constexpr std::uint64_t kLongest = 100;
  if (!is_there(seal_of(path))) return false;
  const FileBytes seal = read_file(seal_of(path), kLongest);
  const std::string wanted = seal_for(std::as_bytes(model));
  return std::ranges::equal(seal.span(), std::as_bytes(std::span(wanted)));
}

}  // namespace

bool is_sound_sentencepiece(std::string_view version) {
  std::array<int, 3> numbers{};
  for (int& number : numbers) {
    const char* end = version.data() + version.size();
    const auto [stop, error] = std::from_chars(version.data(), end, number);
    if (error != std::errc()) return false;
    version.remove_prefix(static_cast<std::size_t>(stop - version.data()));
    if (version.starts_with('.')) version.remove_prefix(1);
  }
  return numbers >= std::array{0, 2, 1};
}

struct Vocabulary::Processor : sentencepiece::SentencePieceProcessor {};

namespace {

/// Loads the model; what is wrong with it, or nothing. The library throws for some models.
std::string fault_of(sentencepiece::SentencePieceProcessor& processor, const std::string& model) {
  try {
    const auto status = processor.LoadFromSerializedProto(model);
    return status.ok() ? "" : status.ToString();
  } catch (const std::exception& error) {
    return error.what();
  }
}

}  // namespace

Vocabulary::Vocabulary(std::string model)
    : model_(std::make_shared<const std::string>(std::move(model))) {
  auto processor = std::make_shared<Processor>();
  const std::string fault = fault_of(*processor, *model_);
  if (!fault.empty()) {
    fail_io({.place = "vocabulary", .what = "this is no SentencePiece model", .got = fault});
  }
  const bool is_ours =
      processor->pad_id() == 0 && processor->bos_id() == kBegin && processor->eos_id() == kEnd;
  if (!is_ours) {
    fail_io({.place = "vocabulary",
             .what = "pieces 0, 2 and 3 must be padding, beginning and end",
             .got = std::to_string(processor->pad_id()) + ", " +
                    std::to_string(processor->bos_id()) + " and " +
                    std::to_string(processor->eos_id()),
             .remedy = "train with --pad_id=0 --unk_id=1 --bos_id=2 --eos_id=3"});
  }
  processor_ = std::move(processor);
}

Vocabulary Vocabulary::train(std::span<const std::string> lines, std::int64_t pieces,
                             Normalization normalization) {
  Lines iterator(lines);
  std::string model;
  const auto status = sentencepiece::SentencePieceTrainer::Train(settings(pieces, normalization),
                                                                 &iterator, &model);
  if (!status.ok()) {
    fail_argument({.place = "vocabulary",
                   .what = "cannot learn " + std::to_string(pieces) + " pieces from " +
                           std::to_string(lines.size()) + " lines",
                   .got = status.ToString(),
                   .remedy = "choose another number of pieces, or give more text"});
  }
  return Vocabulary(std::move(model));
}

Vocabulary Vocabulary::load(const std::filesystem::path& path, Trust trust) {
  constexpr std::int64_t kMost = std::int64_t{64} << 20;
  const auto bytes = read_whole(path, kMost);
  if (trust == Trust::sealed && !is_sound_sentencepiece(kVersion) && !is_sealed(path, bytes)) {
    fail_io({.place = "vocabulary",
             .what = quoted(path) +
                     " is of somebody else, or altered: it has not the seal of a run, "
                     "and a model that was made for it could run code in this "
                     "version of SentencePiece",
             .got = "version " + std::string(kVersion),
             .remedy = "build with SentencePiece 0.2.1 or newer, or say with --trust-vocabulary "
                       "that you know who made the file"});
  }
  try {
    return Vocabulary(std::string(bytes.begin(), bytes.end()));
  } catch (const IoError& error) {
    fail_io({.place = "vocabulary", .what = quoted(path) + " cannot be used", .got = error.what()});
  }
}

void Vocabulary::save(const std::filesystem::path& path) const {
  write_file(path, *model_);
  write_file(seal_of(path), seal_for(std::as_bytes(std::span(*model_))));
}

std::int64_t Vocabulary::pieces() const { return processor_->GetPieceSize(); }

std::vector<std::int64_t> Vocabulary::encode(const std::string& line) const {
  const std::vector<int> ids = processor_->EncodeAsIds(line);
  return {ids.begin(), ids.end()};
}

std::string Vocabulary::decode(std::span<const std::int64_t> pieces) const {
  return processor_->DecodeIds({pieces.begin(), pieces.end()});
}

}  // namespace gossamer
