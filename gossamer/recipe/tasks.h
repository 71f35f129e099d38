#pragma once
/// The kinds of data by name; `data` reads them.

#include <string_view>

namespace gossamer {

enum class TaskKind { images, text, translation };

struct TaskFacts {
  std::string_view name;
  std::string_view summary;
  std::string_view files;  ///< for --help; empty: the name says it
};

/// In the order of the enumeration.
inline constexpr TaskFacts kTasks[] = {
    {"images", "images and labels in files like those of MNIST or CIFAR, or in a folder per class",
     "IDX, CIFAR, or a folder of JPEG and PNG files per class"},
    {"text", "any file, or the files of a folder, as bytes or pieces", "a file or folder"},
    {"translation", "lines of text and their translations, as pieces", ""},
};
inline constexpr TaskKind kAllTasks[] = {TaskKind::images, TaskKind::text, TaskKind::translation};

std::string_view name_of(TaskKind task);

/// Throws std::invalid_argument that lists the names where there is no such kind.
TaskKind find_task(std::string_view name);

/// Of text: what a model predicts.
enum class Objective {
  next,    ///< each token from those before it
  masked,  ///< hidden tokens from both sides
};

std::string_view name_of(Objective objective);

/// Throws std::invalid_argument that lists the names.
Objective find_objective(std::string_view name);

}  // namespace gossamer
