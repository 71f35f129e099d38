// IDX files, as they are or packed by gzip.

#include "gossamer/base/fuzz.h"
#include "gossamer/base/gzip.h"
#include "gossamer/base/scratch_folder.h"
#include "gossamer/data/idx.h"

namespace gossamer {

bool fuzz_idx(std::span<const std::byte> bytes) {
  FuzzBytes input(bytes);
  const bool is_packed = input.take<std::uint8_t>() % 2 != 0;
  const std::string text(input.text());
  const ScratchFolder folder;
  const std::filesystem::path path = folder.put("images", is_packed ? gzipped(text) : text);
  return takes([&] {
    const IdxArray array = read_idx(path);
    std::size_t count = 1;
    for (const int size : array.shape) count *= static_cast<std::size_t>(size);
    fuzz_check(array.values.size() == count, "as many values as the shape says");
  });
}

}  // namespace gossamer
