#include "gossamer/cli/plan/gpu_flags.h"

#include <algorithm>
#include <cmath>

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

std::string inside_assumption(const GpuPreset& gpu, const ClusterFile& cluster) {
  const HostSpec* most = &cluster.cluster.hosts.front();
  for (const HostSpec& host : cluster.cluster.hosts) {
    if (host.workers > most->workers) most = &host;
  }
  const double rate = most->inside.rate_bytes_per_s;
  std::string text = in_gigabytes(rate) + " between two GPUs of a host: " + std::string(gpu.port) +
                     " carries " + in_gigabytes(gpu.port_bytes_per_s) + " each way";
  if (rate < gpu.port_bytes_per_s) {
    text += ", to " + std::to_string(most->workers - 1) + " others at once";
    if (rate == most->link.rate_bytes_per_s) text += ", but no less than the link";
  }
  return text + "; --inside-rate";
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
  of_gpu(app.add_option("--utilisation,--utilization", f.utilisation,
                        "of the GPU's peak (default: of large transformers, by GPU)"))
      ->check(CLI::Range(0.001, 1.0));
}

bool computes_tokens(const GpuFlags& f) {
  return !f.tokens_per_step.empty() || !f.tokens_per_worker.empty();
}

double gpu_compute_s(const GpuFlags& f, double parameters, int workers,
                     const std::string& command) {
  return compute_s(find_gpu(f.name), {.parameters = parameters,
                                      .tokens = tokens_of_worker(f, workers, command),
                                      .utilisation = utilisation_of(f)});
}

std::vector<std::string> gpu_assumptions(const GpuFlags& f, const ClusterFile& cluster,
                                         double parameters, const GpuRates& rates) {
  const GpuPreset& gpu = find_gpu(f.name);
  std::vector<std::string> lines;
  if (computes_tokens(f)) {
    const double tokens = tokens_of_worker(f, cluster.cluster.shape().workers(), "plan");
    const std::string peak = in_tera(gpu.peak_flop_per_s) + " " + std::string(gpu.format) +
                             " dense (" + std::string(gpu.sheet) + ")";
    lines.push_back("a step of a worker: 6 FLOP x parameters x " + one_digit(tokens) + " tokens");
    lines.push_back(
        std::string(gpu.title) + ": " + peak + ", of which " + shortest(utilisation_of(f)) +
        " are used" +
        (f.utilisation > 0 ? "" : " (" + std::string(gpu.measured) + "); --utilisation"));
    if (f.utilisation == 0 && parameters < kSmall) {
      lines.push_back(
          "that is the share of models of billions of parameters; published runs of a transformer "
          "of 65M used .02 to .06");
    }
  }
  if (rates.inside_rate && std::ranges::any_of(cluster.cluster.hosts, [](const HostSpec& host) {
        return host.workers > 1;
      })) {
    lines.push_back(inside_assumption(gpu, cluster));
  }
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
