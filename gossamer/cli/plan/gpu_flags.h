#pragma once
/// --gpu and what belongs to it: the compute time of a step from tokens, for `simulate` and `plan`.

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "gossamer/base/cluster_file.h"
#include "gossamer/plan/gpu_presets.h"

namespace gossamer {

struct GpuFlags {
  std::string name;                ///< empty: none
  std::string tokens_per_step;     ///< of all workers together; empty: not told
  std::string tokens_per_worker;   ///< the same of one worker
  std::string flop_per_sample;     ///< forward and backward; then samples, not tokens
  std::string samples_per_step;    ///< of all workers together
  std::string samples_per_worker;  ///< the same of one worker
  double utilisation = 0;          ///< 0: that of the preset
};

/// Adds the flags. They exclude the workload's file and `compute`, but for --gpu itself.
void add_gpu_flags(CLI::App& app, GpuFlags& flags, CLI::Option& workload, CLI::Option& compute);

/// Whether the compute time follows from tokens or samples.
bool computes_samples(const GpuFlags& flags);

/// Seconds of forward and backward of a worker. Throws std::invalid_argument for numbers that
/// cannot be meant.
double gpu_compute_s(const GpuFlags& flags, double parameters, int workers,
                     const std::string& command);

/// Which rates are the preset's.
struct GpuRates {
  bool inside_rate = false;
  bool device_inside_rate = false;
  bool device_rate = false;
};

/// What is taken for granted about the GPU, a line each.
std::vector<std::string> gpu_assumptions(const GpuFlags& flags, const ClusterFile& cluster,
                                         double parameters, const GpuRates& rates);

}  // namespace gossamer
