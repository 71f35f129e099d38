#include "gossamer/plan/gpu_presets.h"

#include <algorithm>
#include <string>
#include <vector>

#include "gossamer/base/errors.h"

namespace gossamer {
namespace {

constexpr double kTera = 1e12;
constexpr double kGB = 1e9;
// 6 FLOP per parameter and token over the peak, of runs of large transformers.
constexpr std::string_view kVolta = "0.3 on V100: Shoeybi et al. 2019, Megatron-LM";
constexpr std::string_view kHopper = "0.38 to 0.43 on H100: Llama 3 report, 2024";

// To and from the host's memory: x16.
constexpr PciePort kPcie3{"PCIe 3.0 x16", 16 * kGB};
constexpr PciePort kPcie4{"PCIe 4.0 x16", 32 * kGB};
constexpr PciePort kPcie5{"PCIe 5.0 x16", 64 * kGB};

// Peaks are those without sparsity. Ports: data sheets print both directions together, here is one:
// PCIe 3.0 x16 16, PCIe 4.0 x16 32, NVLink 2 to 5 150, 300, 450 and 900 GB/s.
constexpr GpuPreset kGpus[] = {
    {"v100", "V100 SXM2", 125 * kTera, "fp16", "NVIDIA V100 data sheet", 0.3, kVolta, 150 * kGB,
     "NVLink 2", kPcie3},
    {"t4", "T4", 65 * kTera, "fp16", "NVIDIA T4 data sheet", 0.3, kVolta, 16 * kGB, "PCIe 3.0 x16",
     kPcie3},
    {"a100", "A100 SXM", 312 * kTera, "bf16", "NVIDIA A100 data sheet", 0.4, kHopper, 300 * kGB,
     "NVLink 3", kPcie4},
    {"a40", "A40", 149.7 * kTera, "bf16", "NVIDIA A40 data sheet", 0.3, kVolta, 32 * kGB,
     "PCIe 4.0 x16", kPcie4},
    {"a10", "A10", 125 * kTera, "bf16", "NVIDIA A10 data sheet", 0.3, kVolta, 32 * kGB,
     "PCIe 4.0 x16", kPcie4},
    {"rtx3090", "RTX 3090", 71 * kTera, "bf16", "NVIDIA GA102 white paper", 0.3, kVolta, 32 * kGB,
     "PCIe 4.0 x16", kPcie4},
    {"rtx4090", "RTX 4090", 165.2 * kTera, "bf16", "NVIDIA Ada white paper", 0.3, kVolta, 32 * kGB,
     "PCIe 4.0 x16", kPcie4},
    {"l4", "L4", 121 * kTera, "bf16", "NVIDIA L4 data sheet", 0.3, kVolta, 32 * kGB, "PCIe 4.0 x16",
     kPcie4},
    {"l40s", "L40S", 362 * kTera, "bf16", "NVIDIA L40S data sheet", 0.3, kVolta, 32 * kGB,
     "PCIe 4.0 x16", kPcie4},
    {"h100", "H100 SXM", 989 * kTera, "bf16", "NVIDIA H100 data sheet", 0.4, kHopper, 450 * kGB,
     "NVLink 4", kPcie5},
    {"h200", "H200 SXM", 989 * kTera, "bf16", "NVIDIA H200 data sheet", 0.4, kHopper, 450 * kGB,
     "NVLink 4", kPcie5},
    {"b200", "B200 (HGX)", 2250 * kTera, "bf16", "NVIDIA HGX B200 data sheet", 0.4, kHopper,
     900 * kGB, "NVLink 5", kPcie5},
};

}  // namespace

std::span<const GpuPreset> gpu_presets() { return kGpus; }

const GpuPreset& find_gpu(std::string_view name) {
  std::vector<std::string_view> names;
  for (const GpuPreset& gpu : kGpus) {
    if (gpu.name == name) return gpu;
    names.push_back(gpu.name);
  }
  fail_unknown_name("gpu", "GPU", name, names);
}

double compute_s(const GpuPreset& gpu, const TokenWork& work) {
  return 6 * work.parameters * work.tokens / (gpu.peak_flop_per_s * work.utilisation);
}

double memory_rate(int workers) { return kMemoryRate / std::max(1, workers - 1); }

LinkSpec device_link(const GpuPreset& gpu) {
  return {.rate_bytes_per_s = kPcieShare * gpu.host.bytes_per_s};
}

}  // namespace gossamer
