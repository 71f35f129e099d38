#pragma once
/// Text as numbered pieces of words (SentencePiece).

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace gossamer {

/// What happens to text before it is cut into pieces: compatible characters become one and runs of
/// spaces one space (Unicode's NFKC), or nothing, so that decode() gives back what encode() took.
enum class Normalization { nfkc, none };

/// Note [Models are code]: SentencePiece before 0.2.1 can be led to write to memory that is not its
/// own by the file of a model that was made for it (CVE-2026-1260). With such a library only files
/// are loaded that have a seal beside them, as save() leaves one, or that the user says to trust.
/// A seal tells a file of a run from others that came by; whoever makes a whole folder can make it.
enum class Trust { sealed, all };

/// Whether this version of SentencePiece may read files of anybody: from 0.2.1 on.
bool is_sound_sentencepiece(std::string_view version);

/// A trained vocabulary. Copies share it; every function may be called from many threads at once.
/// Piece 0 is padding, 1 is unknown, 2 begins a sentence, and 3 ends it.
class Vocabulary {
 public:
  static constexpr std::int64_t kBegin = 2;
  static constexpr std::int64_t kEnd = 3;

  /// Learns byte-pair merges from lines of text: equal lines give equal vocabularies. Throws
  /// std::invalid_argument where the lines have too little for so many pieces.
  static Vocabulary train(std::span<const std::string> lines, std::int64_t pieces,
                          Normalization normalization = Normalization::nfkc);
  /// Throws IoError where the file is no SentencePiece model, numbers its first pieces otherwise,
  /// or is not to be trusted: see Note [Models are code].
  static Vocabulary load(const std::filesystem::path& path, Trust trust = Trust::sealed);
  /// Writes the file, and its seal beside it: the same name with .seal. Throws IoError.
  void save(const std::filesystem::path& path) const;

  /// SentencePiece's own format, as load() takes it.
  const std::string& model() const { return *model_; }
  std::int64_t pieces() const;
  /// Without beginning and end.
  std::vector<std::int64_t> encode(const std::string& line) const;
  std::string decode(std::span<const std::int64_t> pieces) const;

 private:
  struct Processor;
  explicit Vocabulary(std::string model);

  std::shared_ptr<const std::string> model_;
  std::shared_ptr<const Processor> processor_;
};

}  // namespace gossamer
