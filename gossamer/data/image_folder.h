#pragma once
/// Images as JPEG and PNG files in a folder per class, as torchvision's ImageFolder reads them. The
/// files are listed, not read: load_image.h decodes one when it is asked for.

#include <filesystem>
#include <vector>

#include "gossamer/data/image_set.h"

namespace gossamer {

/// All that is in the folder, sorted by name. Throws IoError where it cannot be read.
std::vector<std::filesystem::path> entries_of(const std::filesystem::path& folder);

/// The folders of classes among `entries`, as the part "train"; or where none of them holds images,
/// the folders of classes in each of them, which is a part then.
ImageParts class_folders(const std::vector<std::filesystem::path>& entries);

/// Class k is folders[k]. Its images are the files that end in .jpg, .jpeg or .png, sorted by name;
/// names that begin with a dot are left out. Throws IoError for a class without images.
ImageSet read_class_folders(const std::vector<std::filesystem::path>& folders);

/// Reads the headers of files to know the set's channels, 3 unless all are grey; and, where it is
/// `of_one_size`, height and width. Throws IoError for images of several sizes.
void measure_files(ImageSet& images, bool of_one_size);

}  // namespace gossamer
