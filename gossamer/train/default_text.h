#pragma once
/// The text that is trained on where none is named.

#include <filesystem>

namespace gossamer {

/// The folder of the Python standard library's sources, as the `python3` of the PATH knows it.
/// Nothing of the working directory is run to find it. Throws IoError where there is none.
std::filesystem::path python_sources();

}  // namespace gossamer
