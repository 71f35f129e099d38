#pragma once
/// What a run folder has of the trained model: the consensus of the workers, by the names of its
/// module, and the vocabulary, if any.

#include <filesystem>
#include <string_view>

namespace torch::nn {
class Module;
}

namespace gossamer {

inline constexpr std::string_view kModelFile = "model.safetensors";
inline constexpr std::string_view kVocabularyFile = "vocabulary.model";

/// Writes parameters and buffers as they are. Throws IoError where the disk does not do it.
void save_model(const std::filesystem::path& path, const torch::nn::Module& module);

/// Throws IoError where the file is missing or broken, or its tensors are not the module's.
void load_model(const std::filesystem::path& path, torch::nn::Module& module);

}  // namespace gossamer
