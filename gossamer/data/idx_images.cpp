#include "gossamer/data/idx_images.h"

#include <algorithm>
#include <string>
#include <utility>

#include "gossamer/base/errors.h"
#include "gossamer/data/idx.h"
#include "gossamer/data/read_bytes.h"

namespace gossamer {
namespace {

constexpr std::string_view kIdx = "idx";

void check_not_empty(const std::filesystem::path& path, const IdxArray& array) {
  const auto empty = std::ranges::find(array.shape, 0);
  if (empty == array.shape.end()) return;
  fail_io({.place = kIdx,
           .what = quoted(path) + " is empty",
           .got = "size 0 in dimension " + std::to_string(empty - array.shape.begin()),
           .remedy = "give a set with at least one sample"});
}

void check_images(const std::filesystem::path& path, const IdxArray& images) {
  check_not_empty(path, images);
  const std::size_t rank = images.shape.size();
  if (rank == 3 || rank == 4) return;
  fail_io({.place = kIdx,
           .what = quoted(path) + " must have 3 or 4 dimensions (images, channels, rows, columns)",
           .got = std::to_string(rank),
           .remedy = "give the images first, then the labels"});
}

void check_labels(const std::filesystem::path& path, const IdxArray& labels, int images) {
  check_not_empty(path, labels);
  if (labels.shape.size() == 1 && labels.shape[0] == images) return;
  fail_io({.place = kIdx,
           .what = quoted(path) + " must have one label for each of the " + std::to_string(images) +
                   " images",
           .got = std::to_string(labels.shape[0]) + " in " + std::to_string(labels.shape.size()) +
                  " dimension(s)",
           .remedy = "give images and labels of the same part"});
}

}  // namespace

std::optional<FilePlace> place_of_idx(std::string_view name) {
  constexpr std::string_view kEndings[] = {"-images-idx3-ubyte", "-labels-idx1-ubyte"};
  for (std::size_t place = 0; place < std::size(kEndings); ++place) {
    if (!name.ends_with(kEndings[place])) continue;
    name.remove_suffix(kEndings[place].size());
    return FilePlace{std::string(name), place};
  }
  return std::nullopt;
}

ImageSet read_idx_images(const std::filesystem::path& images, const std::filesystem::path& labels) {
  IdxArray pixels = read_idx(images);
  check_images(images, pixels);
  IdxArray answers = read_idx(labels);
  check_labels(labels, answers, pixels.shape[0]);
  const std::size_t rank = pixels.shape.size();
  return {.count = pixels.shape[0],
          .channels = rank == 4 ? pixels.shape[1] : 1,
          .height = pixels.shape[rank - 2],
          .width = pixels.shape[rank - 1],
          .classes = std::int64_t{*std::ranges::max_element(answers.values)} + 1,
          .pixels = std::move(pixels.values),
          .labels = {answers.values.begin(), answers.values.end()}};
}

ImageSet read_idx_files(const std::vector<std::filesystem::path>& files) {
  return read_idx_images(files.at(0), files.at(1));
}

}  // namespace gossamer
