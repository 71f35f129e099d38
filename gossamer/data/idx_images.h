#pragma once
/// Images and labels as two IDX files, as MNIST and its kin come.

#include <filesystem>
#include <optional>
#include <string_view>
#include <vector>

#include "gossamer/data/image_set.h"

namespace gossamer {

/// `PART-images-idx3-ubyte` comes first, `PART-labels-idx1-ubyte` second.
std::optional<FilePlace> place_of_idx(std::string_view name);

/// Images of sizes [n, height, width] or [n, channels, height, width] and n labels; there are as
/// many classes as the largest label plus one. Throws IoError when sizes or counts do not match.
ImageSet read_idx_images(const std::filesystem::path& images, const std::filesystem::path& labels);

/// The same of a vector with the two.
ImageSet read_idx_files(const std::vector<std::filesystem::path>& files);

}  // namespace gossamer
