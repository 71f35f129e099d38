#pragma once
/// GPUs by name: how fast they compute, and how workers of one host reach each other.

#include <span>
#include <string_view>

#include "gossamer/base/cluster.h"

namespace gossamer {

/// How a GPU reaches the memory of its host.
struct PciePort {
  std::string_view name;
  double bytes_per_s = 0;  ///< nominal, one direction
};

/// Of the nominal rate, what copies to and from pinned memory get: 0.86 on an H200.
inline constexpr double kPcieShare = 0.8;

struct GpuPreset {
  std::string_view name;        ///< the word users type
  std::string_view title;       ///< "A100 SXM"
  double peak_flop_per_s = 0;   ///< of dense matrices in `format`
  std::string_view format;      ///< "bf16"; "fp16" where there is no bf16
  std::string_view sheet;       ///< where peak and inside rate are printed
  double utilisation = 0;       ///< of the peak, by large transformers
  std::string_view measured;    ///< where the utilisation is from
  double port_bytes_per_s = 0;  ///< one direction, from one GPU to all others of its host together
  std::string_view port;        ///< "NVLink 3"
  PciePort host;
};

/// All of them, older ones first.
std::span<const GpuPreset> gpu_presets();

/// The preset of that name. Throws std::invalid_argument that lists the names for any other word.
const GpuPreset& find_gpu(std::string_view name);

/// What one worker computes in a step.
struct TokenWork {
  double parameters = 0;
  double tokens = 0;       ///< of this worker
  double utilisation = 0;  ///< of the GPU's peak
};

/// 6 P T / (peak · utilisation) seconds of forward and backward: 2 FLOP per parameter and token
/// forward, twice that backward (Kaplan et al. 2020, "Scaling laws for neural language models",
/// 2.1). Leaves out what attention costs beyond its weights.
double compute_s(const GpuPreset& gpu, const TokenWork& work);

/// Of a thread that copies from one worker's memory to another's while they copy as well, 16 MB
/// (docs/results/transport.md).
inline constexpr double kMemoryRate = 12e9;

/// What one of `workers` of a host gets from one other over the host's memory, where it reads from
/// all at once: an even part of kMemoryRate.
double memory_rate(int workers);

/// What a copy between the GPU and pinned memory of its host gets.
LinkSpec device_link(const GpuPreset& gpu);

}  // namespace gossamer
