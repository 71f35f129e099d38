// What an image costs before a step: decoding a JPEG file of 500 × 375 pixels, and a random part of
// it resized to 224 × 224. The counter items_per_second is images per second on one core.

#include <benchmark/benchmark.h>

#include <algorithm>
#include <cmath>

#include "gossamer/base/rng.h"
#include "gossamer/data/augment.h"
#include "gossamer/data/decode_image.h"
#include "gossamer/data/fit_image.h"
#include "gossamer/data/image_fixture.h"

namespace gossamer {
namespace {

constexpr ImageSize kPhotograph{.height = 375, .width = 500};
constexpr ImageSize kInput{.height = 224, .width = 224};

/// Waves of many lengths and some noise: about as many bytes as photographs of this size have.
ImageFileBytes photograph() {
  Rng rng(1);
  ImageFileBytes pixels;
  for (std::int64_t row = 0; row < kPhotograph.height; ++row) {
    for (std::int64_t column = 0; column < kPhotograph.width; ++column) {
      for (int c = 0; c < 3; ++c) {
        double light = 128 + 20 * rng.normal();
        for (int wave = 1; wave <= 32; wave *= 2) {
          const double phase = 0.02 * wave * static_cast<double>(row + (c + 1) * column) + wave;
          light += 60. / (wave + 1) * std::sin(phase);
        }
        pixels.push_back(static_cast<std::uint8_t>(std::clamp(light, 0., 255.)));
      }
    }
  }
  return jpeg_bytes(kPhotograph, pixels, {.quality = 90, .colour_step = 2});
}

void decode(benchmark::State& state) {
  const ImageFileBytes file = photograph();
  for (auto _ : state) benchmark::DoNotOptimize(decode_image("'file'", file, 3));
  state.SetItemsProcessed(state.iterations());
  state.counters["file_bytes"] = static_cast<double>(file.size());
}
BENCHMARK(decode)->Unit(benchmark::kMillisecond);

void crop(benchmark::State& state) {
  const Image image = decode_image("'file'", photograph(), 3);
  std::uint64_t key = 0;
  for (auto _ : state) {
    benchmark::DoNotOptimize(resize_box(image.view(), random_box(++key, image.size), kInput));
  }
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(crop)->Unit(benchmark::kMillisecond);

void decode_and_crop(benchmark::State& state) {
  const ImageFileBytes file = photograph();
  std::uint64_t key = 0;
  for (auto _ : state) {
    const Image image = decode_image("'file'", file, 3);
    benchmark::DoNotOptimize(resize_box(image.view(), random_box(++key, image.size), kInput));
  }
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(decode_and_crop)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace gossamer
