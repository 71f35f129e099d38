#pragma once
/// The binary files of CIFAR-10 and CIFAR-100 (Krizhevsky 2009): 32×32 images in three channels,
/// each behind its label bytes.

#include <filesystem>
#include <optional>
#include <string_view>
#include <vector>

#include "gossamer/data/image_set.h"

namespace gossamer {

/// `data_batch_1.bin`, `data_batch_2.bin`, … are the part "train", `test_batch.bin` is "test".
std::optional<FilePlace> place_of_cifar10(std::string_view name);

/// `train.bin` and `test.bin`.
std::optional<FilePlace> place_of_cifar100(std::string_view name);

/// One label byte, then 3072 of pixels. Throws IoError when a file does not consist of such records
/// or a label is not below 10.
ImageSet read_cifar10(const std::vector<std::filesystem::path>& files);

/// Two label bytes: the superclass, and the class of a hundred that is taken.
ImageSet read_cifar100(const std::vector<std::filesystem::path>& files);

}  // namespace gossamer
