// Files of tensors.

#include <algorithm>

#include "gossamer/base/fuzz.h"
#include "gossamer/base/scratch_folder.h"
#include "gossamer/checkpoint/safetensors.h"

namespace gossamer {
namespace safetensors_fuzz {

FileBytes in_memory(std::string_view text) {
  FileBytes bytes;
  bytes.size = text.size();
  bytes.memory.reset(
      static_cast<std::byte*>(::operator new[](text.size(), std::align_val_t{kCacheLine})));
  if (!text.empty()) std::memcpy(bytes.memory.get(), text.data(), text.size());
  return bytes;
}

bool are_same(const TensorView& a, const TensorView& b) {
  return a.name == b.name && a.dtype == b.dtype && a.shape == b.shape &&
         std::ranges::equal(a.data, b.data);
}

void write_again(const SafetensorsFile& file) {
  const ScratchFolder folder;
  const std::filesystem::path path = folder.path() / "again.safetensors";
  write_safetensors(path, file.tensors(), file.metadata());
  const SafetensorsFile again(path);
  fuzz_check(again.metadata() == file.metadata(), "other metadata after writing");
  fuzz_check(again.tensors().size() == file.tensors().size(), "other tensors after writing");
  for (const TensorView& tensor : file.tensors()) {
    fuzz_check(are_same(again.at(tensor.name), tensor), "another tensor after writing");
  }
}

}  // namespace safetensors_fuzz

bool fuzz_safetensors(std::span<const std::byte> bytes) {
  using namespace safetensors_fuzz;
  FuzzBytes input(bytes);
  std::string text;
  if (input.take<std::uint8_t>() % 2 != 0) {  // the length of the header is as it should be
    const std::size_t data = input.take<std::uint16_t>();
    const std::string_view rest = input.text();
    const std::uint64_t header = rest.size() - std::min(data, rest.size());
    text.assign(reinterpret_cast<const char*>(&header), sizeof header);
    text += rest;
  } else {
    text = input.text();
  }
  return takes([&] {
    const SafetensorsFile file("a.safetensors", in_memory(text));
    unsigned sum = 0;
    for (const TensorView& tensor : file.tensors()) {
      fuzz_check(file.find(tensor.name) == &tensor, "a tensor is not found");
      for (const std::byte byte : tensor.data) sum += std::to_integer<unsigned>(byte);
      std::vector<float> values(tensor.data.size() / sizeof(float));
      takes([&] { file.copy(tensor.name, values); });
    }
    takes([&] { file.at("none"); });
    if (sum % 16 == 0 || file.tensors().size() > 1) write_again(file);
  });
}

}  // namespace gossamer
