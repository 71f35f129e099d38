#pragma once
/// Text as numbered pieces of words (SentencePiece).

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace gossamer {

/// What happens to text before it is cut into pieces: compatible characters become one and runs of
/// spaces one space (Unicode's NFKC), or nothing, so that decode() gives back what encode() took.
enum class Normalization { nfkc, none };

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
  /// Throws IoError where the file is no SentencePiece model or numbers its first pieces otherwise.
  static Vocabulary load(const std::filesystem::path& path);

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
