#include "gossamer/plan/gpu_presets.h"

#include <gtest/gtest.h>

#include <set>
#include <stdexcept>
#include <string>

namespace gossamer {
namespace {

TEST(GpuPresets, ComputeTimesAreThoseOfSixFlopPerParameterAndToken) {
  // 6 · 1e9 · 2000 = 12 TFLOP at .4 · 312 = 124.8 TFLOP/s.
  EXPECT_NEAR(compute_s(find_gpu("a100"), {1e9, 2000, 0.4}), 12 / 124.8, 1e-12);
  // 6 · 350e6 · 1024 = 2.1504 TFLOP at half of 65.
  EXPECT_NEAR(compute_s(find_gpu("t4"), {350e6, 1024, 0.5}), 2.1504 / 32.5, 1e-12);
}

TEST(GpuPresets, WorkersOfAHostShareWhatAThreadCopies) {
  EXPECT_NEAR(memory_rate(8), 12e9 / 7, 1);
  EXPECT_EQ(memory_rate(2), 12e9);
  EXPECT_EQ(memory_rate(1), 12e9);
}

TEST(GpuPresets, SayWhereTheirNumbersAreFrom) {
  std::set<std::string_view> names;
  for (const GpuPreset& gpu : gpu_presets()) {
    EXPECT_TRUE(names.insert(gpu.name).second) << gpu.name;
    EXPECT_GT(gpu.peak_flop_per_s, 5e13) << gpu.name;
    EXPECT_GT(gpu.port_bytes_per_s, 1e10) << gpu.name;
    EXPECT_GT(gpu.host.bytes_per_s, 1e10) << gpu.name;
    EXPECT_LE(gpu.host.bytes_per_s, gpu.port_bytes_per_s) << gpu.name;
    EXPECT_GT(gpu.utilisation, 0) << gpu.name;
    EXPECT_LT(gpu.utilisation, 1) << gpu.name;
    for (std::string_view text :
         {gpu.title, gpu.format, gpu.sheet, gpu.measured, gpu.port, gpu.host.name}) {
      EXPECT_FALSE(text.empty()) << gpu.name;
    }
  }
}

TEST(GpuPresets, UnknownNamesListTheOthers) {
  try {
    find_gpu("a10o");
    FAIL();
  } catch (const std::invalid_argument& error) {
    EXPECT_NE(std::string(error.what()).find("a100"), std::string::npos) << error.what();
  }
}

}  // namespace
}  // namespace gossamer
