#pragma once
/// IDX files, the format of MNIST and its kin: arrays of bytes with their shape.

#include <cstdint>
#include <filesystem>
#include <vector>

namespace gossamer {

/// Row-major; shape[0] is the number of images or labels.
struct IdxArray {
  std::vector<int> shape;
  std::vector<std::uint8_t> values;
};

/// Reads a file of unsigned bytes, packed by gzip or not. Throws IoError for what is missing, not
/// IDX, truncated or too long.
IdxArray read_idx(const std::filesystem::path& path);

}  // namespace gossamer
