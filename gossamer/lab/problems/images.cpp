#include <algorithm>
#include <string>

#include "gossamer/base/errors.h"
#include "gossamer/data/idx.h"
#include "gossamer/lab/problem.h"

namespace gossamer {
namespace {

void check(const IdxArray& images, const IdxArray& labels, const std::string& names) {
  if (images.shape.size() == 3 && labels.shape.size() == 1 && images.shape[0] == labels.shape[0] &&
      images.shape[0] > 0 && images.shape[1] > 0 && images.shape[2] > 0) {
    return;
  }
  fail_io({.place = "lab",
           .what = names + " must be images of rows and columns and a label for each",
           .got = std::to_string(images.shape.size()) + " and " +
                  std::to_string(labels.shape.size()) + " dimensions, " +
                  std::to_string(images.shape[0]) + " and " + std::to_string(labels.shape[0]) +
                  " items",
           .remedy = "give the images first, then the labels that belong to them"});
}

}  // namespace

Images read_images(const std::filesystem::path& images, const std::filesystem::path& labels,
                   int pool) {
  if (pool < 1) {
    fail_argument({.place = "lab", .what = "pool must be 1 or more", .got = std::to_string(pool)});
  }
  const IdxArray pixels = read_idx(images);
  const IdxArray classes = read_idx(labels);
  check(pixels, classes, images.string() + " and " + labels.string());
  const int rows = pixels.shape[1];
  const int columns = pixels.shape[2];
  const int high = (rows + pool - 1) / pool;
  const int wide = (columns + pool - 1) / pool;
  Images all{.dimension = high * wide + 1,
             .classes = 1 + *std::ranges::max_element(classes.values),
             .features = {},
             .labels = {classes.values.begin(), classes.values.end()}};
  const auto dimension = static_cast<std::size_t>(all.dimension);
  all.features.assign(all.labels.size() * dimension, 0);
  const double share = 1. / (255. * pool * pool);
  std::size_t at = 0;
  for (std::size_t image = 0; image < all.labels.size(); ++image) {
    double* features = &all.features[image * dimension];
    for (int r = 0; r < rows; ++r) {
      for (int c = 0; c < columns; ++c) {
        features[r / pool * wide + c / pool] += share * pixels.values[at++];
      }
    }
    features[dimension - 1] = 1;
  }
  return all;
}

}  // namespace gossamer
