#include "gossamer/cli/plan/gpu_flags.h"

#include <algorithm>
#include <cmath>

#include "gossamer/base/errors.h"
#include "gossamer/base/units.h"
#include "gossamer/cli/amount.h"

namespace gossamer {
namespace {

constexpr double kSmall =
    1e9;  // parameters of models whose utilisation may be far below the preset
constexpr const char* kGroup = "GPU, instead of a compute time";

std::string names_of_gpus() {
  std::string names;
  for (const GpuPreset& gpu : gpu_presets()) {
    names += (names.empty() ? "" : ", ") + std::string(gpu.name);
  }
  return names;
}

std::string in_tera(double value) { return shortest(value / 1e12) + " TFLOP/s"; }

std::string one_digit(double value) { return shortest(std::round(10 * value) / 10); }

std::string in_gigabytes(double value) { return one_digit(value / 1e9) + " GB/s"; }

double utilisation_of(const GpuFlags& f) {
  return f.utilisation > 0 ? f.utilisation : find_gpu(f.name).utilisation;
}

double tokens_of_worker(const GpuFlags& f, int workers, const std::string& command) {
  if (!f.tokens_per_worker.empty()) {
    return static_cast<double>(parse_amount("--tokens-per-worker", f.tokens_per_worker, command));
  }
  return static_cast<double>(parse_amount("--tokens-per-step", f.tokens_per_step, command)) /
         workers;
}

bool has_samples(const GpuFlags& f) {
  return !f.samples_per_step.empty() || !f.samples_per_worker.empty();
}

double flop_of_sample(const GpuFlags& f, const std::string& command) {
  if (f.flop_per_sample.empty()) {
    fail_argument({.place = command,
                   .what = "samples need the FLOP of one, forward and backward",
                   .got = "samples alone",
                   .remedy = "give --flop-per-sample, or --compute"});
  }
  return static_cast<double>(parse_amount("--flop-per-sample", f.flop_per_sample, command));
}

double samples_of_worker(const GpuFlags& f, int workers, const std::string& command) {
  if (!f.samples_per_worker.empty()) {
    return static_cast<double>(parse_amount("--samples-per-worker", f.samples_per_worker, command));
  }
  if (f.samples_per_step.empty()) {
    fail_argument({.place = command,
                   .what = "--flop-per-sample needs a number of samples",
                   .got = "none",
                   .remedy = "give --samples-per-worker or --samples-per-step"});
  }
  return static_cast<double>(parse_amount("--samples-per-step", f.samples_per_step, command)) /
         workers;
}

std::string compute_assumption(const GpuFlags& f, int workers) {
  if (has_samples(f)) {
    return "a step of a worker: " + f.flop_per_sample + " FLOP x " +
           one_digit(samples_of_worker(f, workers, "plan")) + " samples";
  }
  return "a step of a worker: 6 FLOP x parameters x " +
         one_digit(tokens_of_worker(f, workers, "plan")) +
         " tokens, as in transformers; a convolution uses a parameter many times per sample: "
         "--flop-per-sample";
}

/// That of the host with the most workers; there the rate is the least.
std::string inside_assumption(const ClusterFile& cluster) {
  const HostSpec& most = std::ranges::max(cluster.cluster.hosts, {}, &HostSpec::workers);
  std::string text =
      in_gigabytes(most.inside.rate_bytes_per_s) +
      " between two workers of a host for all but ddp, over the memory of the CPU: " +
      in_gigabytes(kMemoryRate) + " of a thread that copies";
  if (most.workers > 2) text += ", from " + std::to_string(most.workers - 1) + " others at once";
  return text + "; --inside-rate";
}

std::string device_inside_assumption(const GpuPreset& gpu) {
  return in_gigabytes(gpu.port_bytes_per_s) +
         " each way between two GPUs of a host for ddp: " + std::string(gpu.port) +
         "; --device-inside-rate";
}

}  // namespace

void add_gpu_flags(CLI::App& app, GpuFlags& f, CLI::Option& workload, CLI::Option& compute) {
  CLI::Option* gpu =
      app.add_option("--gpu", f.name, names_of_gpus() + "; left out: --compute tells the time")
          ->group(kGroup);
  gpu->excludes(&workload);
  const auto of_gpu = [&](CLI::Option* option) {
    return option->needs(gpu)->excludes(&compute)->group(kGroup);
  };
  CLI::Option* all =
      of_gpu(app.add_option("--tokens-per-step", f.tokens_per_step,
                            "of all workers together: 64k, 1M; left out: of --tokens-per-worker"));
  of_gpu(app.add_option("--tokens-per-worker", f.tokens_per_worker,
                        "the same of one worker; left out: of --tokens-per-step"))
      ->excludes(all);
  CLI::Option* samples =
      of_gpu(app.add_option("--samples-per-step", f.samples_per_step,
                            "of all workers together, with --flop-per-sample; left out: of "
                            "--samples-per-worker"));
  CLI::Option* own =
      of_gpu(app.add_option("--samples-per-worker", f.samples_per_worker,
                            "the same of one worker; left out: of --samples-per-step"));
  own->excludes(samples);
  of_gpu(app.add_option(
             "--flop-per-sample", f.flop_per_sample,
             "forward and backward, of models that are no transformers: 25G; left out: tokens "
             "count"))
      ->excludes(all);
  of_gpu(app.add_option("--utilisation,--utilization", f.utilisation,
                        "of the GPU's peak (default: of large transformers, by GPU)"))
      ->check(CLI::Range(0.001, 1.0));
}

bool computes_samples(const GpuFlags& f) {
  return !f.tokens_per_step.empty() || !f.tokens_per_worker.empty() || has_samples(f);
}

double gpu_compute_s(const GpuFlags& f, double parameters, int workers,
                     const std::string& command) {
  const GpuPreset& gpu = find_gpu(f.name);
  if (!f.flop_per_sample.empty() || has_samples(f)) {
    return flop_of_sample(f, command) * samples_of_worker(f, workers, command) /
           (gpu.peak_flop_per_s * utilisation_of(f));
  }
  return compute_s(gpu, {.parameters = parameters,
                         .tokens = tokens_of_worker(f, workers, command),
                         .utilisation = utilisation_of(f)});
}

std::vector<std::string> gpu_assumptions(const GpuFlags& f, const ClusterFile& cluster,
                                         double parameters, const GpuRates& rates) {
  const GpuPreset& gpu = find_gpu(f.name);
  std::vector<std::string> lines;
  if (computes_samples(f)) {
    const std::string peak = in_tera(gpu.peak_flop_per_s) + " " + std::string(gpu.format) +
                             " dense (" + std::string(gpu.sheet) + ")";
    lines.push_back(compute_assumption(f, cluster.cluster.shape().workers()));
    lines.push_back(
        std::string(gpu.title) + ": " + peak + ", of which " + shortest(utilisation_of(f)) +
        " are used" +
        (f.utilisation > 0 ? "" : " (" + std::string(gpu.measured) + "); --utilisation"));
    if (f.utilisation == 0 && has_samples(f)) {
      lines.push_back("that is the share of large transformers; of other models it is not known");
    } else if (f.utilisation == 0 && parameters < kSmall) {
      lines.push_back(
          "that is the share of models of billions of parameters; published runs of a transformer "
          "of 65M used .02 to .06");
    }
  }
  const bool has_mates = std::ranges::any_of(cluster.cluster.hosts,
                                             [](const HostSpec& host) { return host.workers > 1; });
  if (rates.inside_rate && has_mates) lines.push_back(inside_assumption(cluster));
  if (rates.device_inside_rate && has_mates) lines.push_back(device_inside_assumption(gpu));
  if (rates.device_rate) {
    lines.push_back(in_gigabytes(device_link(gpu).rate_bytes_per_s) +
                    " each way between a GPU and the host's memory, where exchanges are: " +
                    shortest(kPcieShare) + " of " + std::string(gpu.host.name) + "; --device-rate");
  } else if (std::ranges::none_of(cluster.cluster.hosts, is_limited, &HostSpec::device)) {
    lines.push_back(
        "no copies between a GPU and the host's memory, where exchanges are: the hosts have no "
        "device_rate");
  }
  return lines;
}

}  // namespace gossamer
