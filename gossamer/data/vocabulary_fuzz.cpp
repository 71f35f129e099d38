// Models of SentencePiece, and what they make of text.

#include "gossamer/base/fuzz.h"
#include "gossamer/base/scratch_folder.h"
#include "gossamer/data/vocabulary.h"

namespace gossamer {

bool fuzz_vocabulary(std::span<const std::byte> bytes) {
  FuzzBytes input(bytes);
  const std::string line(input.take_text(input.take<std::uint8_t>()));
  const ScratchFolder folder;
  const auto path = folder.put("vocabulary.model", input.text());
  return takes([&] {
    const Vocabulary vocabulary = Vocabulary::load(path, Trust::all);
    const std::vector<std::int64_t> pieces = vocabulary.encode(line);
    for (const std::int64_t piece : pieces) {
      fuzz_check(0 <= piece && piece < vocabulary.pieces(), "a piece of the vocabulary");
    }
    vocabulary.decode(pieces);
  });
}

}  // namespace gossamer
