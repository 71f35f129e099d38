#pragma once
/// The safetensors file format: named tensors, written in a stream and read with every length
/// checked.
///
/// Format: 8 bytes little-endian header length N; N bytes of JSON that begin with `{` and may end
/// in spaces; then the data, without holes. github.com/huggingface/safetensors#format

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <ranges>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "gossamer/base/disk.h"

namespace gossamer {

/// A tensor in memory that someone else owns. `dtype` is the format's own word: "F32", "I64", …
struct TensorView {
  std::string name;
  std::string dtype;
  std::vector<std::int64_t> shape;
  std::span<const std::byte> data;
};

/// Bytes of one element; 0 for a word the format or this reader does not know.
std::size_t tensor_dtype_bytes(std::string_view dtype);

/// The format's word for a C++ type.
template <class T>
constexpr std::string_view tensor_dtype();
template <>
constexpr std::string_view tensor_dtype<float>() {
  return "F32";
}
template <>
constexpr std::string_view tensor_dtype<double>() {
  return "F64";
}
template <>
constexpr std::string_view tensor_dtype<std::int64_t>() {
  return "I64";
}
template <>
constexpr std::string_view tensor_dtype<std::uint64_t>() {
  return "U64";
}
template <>
constexpr std::string_view tensor_dtype<std::uint8_t>() {
  return "U8";
}

/// A one-dimensional view of a vector, array or span, which the caller keeps alive.
template <std::ranges::contiguous_range Values>
  requires std::ranges::borrowed_range<Values>
TensorView view_tensor(std::string name, Values&& values) {
  const std::span data(values);
  using Element = typename decltype(data)::value_type;
  return {std::move(name),
          std::string(tensor_dtype<Element>()),
          {static_cast<std::int64_t>(data.size())},
          std::as_bytes(data)};
}

using TensorMetadata = std::map<std::string, std::string>;

/// Writes `path` whole or not at all and brings it to the disk. In the file, wider elements come
/// first, so that each tensor is aligned to its element; the data begin on a 64-byte boundary.
/// Throws std::invalid_argument for names, shapes or sizes that do not fit, IoError for the disk.
FileDigest write_safetensors(const std::filesystem::path& path, std::span<const TensorView> tensors,
                             const TensorMetadata& metadata = {});

/// A safetensors file in memory. Every length, offset and size was checked before use.
class SafetensorsFile {
 public:
  /// Reads the file; throws IoError that names it, what is wrong, where, and what to do.
  explicit SafetensorsFile(std::filesystem::path path);
  /// Takes bytes already read from `path`.
  SafetensorsFile(std::filesystem::path path, FileBytes bytes);

  const std::filesystem::path& path() const { return path_; }
  /// In the order of the data. The views live as long as this object.
  std::span<const TensorView> tensors() const { return tensors_; }
  const TensorMetadata& metadata() const { return metadata_; }

  /// Null when there is none of that name.
  const TensorView* find(std::string_view name) const;
  /// Throws IoError that names the nearest tensor there is.
  const TensorView& at(std::string_view name) const;

  /// Copies a tensor out; throws IoError unless element type and number are those of `out`.
  template <std::ranges::contiguous_range Values>
  void copy(std::string_view name, Values&& out) const {
    const std::span data(out);
    using Element = typename decltype(data)::value_type;
    copy_bytes(name, tensor_dtype<Element>(), std::as_writable_bytes(data));
  }

 private:
  void copy_bytes(std::string_view name, std::string_view dtype, std::span<std::byte> out) const;

  std::filesystem::path path_;
  FileBytes bytes_;
  std::vector<TensorView> tensors_;
  TensorMetadata metadata_;
  std::map<std::string, std::size_t, std::less<>> index_;
};

}  // namespace gossamer
