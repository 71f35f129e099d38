#include <cstdio>
#include <iostream>
#include <mutex>

#include "gossamer/base/disk.h"
#include "gossamer/base/errors.h"
#include "gossamer/base/index.h"
#include "gossamer/base/outside_error.h"
#include "gossamer/base/units.h"
#include "gossamer/cli/train/commands.h"
#include "gossamer/cli/train/request.h"
#include "gossamer/engine/worker_threads.h"
#include "gossamer/recipe/host_shape.h"
#include "gossamer/train/interrupt.h"
#include "gossamer/train/probe.h"
#include "gossamer/train/process.h"
#include "gossamer/transport/threads.h"

namespace gossamer {
namespace {

void write_files(const ProbedJob& probed, const std::filesystem::path& out) {
  if (out.empty()) return;
  std::error_code error;
  std::filesystem::create_directories(out, error);
  if (error) {
    fail_outside({.place = "probe",
                  .what = "cannot make the folder " + out.string(),
                  .got = error.message()});
  }
  const std::pair<const char*, std::string> files[] = {{"cluster.toml", to_toml(probed.cluster)},
                                                       {"workload.toml", to_toml(probed.workload)}};
  for (const auto& [name, text] : files) write_file(out / name, text);
}

Json to_json(const LinkSpec& link) {
  Json json = {{"latency_s", link.latency_s}, {"rate_bytes_per_s", nullptr}};
  if (std::isfinite(link.rate_bytes_per_s)) json["rate_bytes_per_s"] = link.rate_bytes_per_s;
  return json;
}

Json to_json(const ProbedJob& probed) {
  Json hosts = Json::array();
  const HostShape shape = probed.cluster.cluster.shape();
  for (int h = 0; h < shape.hosts(); ++h) {
    const HostSpec& host = probed.cluster.cluster.hosts[at(h)];
    hosts.push_back({{"workers", host.workers},
                     {"link", to_json(host.link)},
                     {"inside", to_json(host.inside)},
                     {"device", to_json(host.device)},
                     {"speed", probed.cluster.speeds[at(shape.first_rank(h))]}});
  }
  const Workload& workload = probed.workload.workload;
  return {{"hosts", hosts},
          {"parameters", elements_of(workload)},
          {"buckets", workload.buckets},
          {"compute_s", workload.compute.mean_s},
          {"deviation_s", workload.compute.deviation_s},
          {"forward_share", workload.forward_share},
          {"update_s", workload.update_s}};
}

void print_table(const ProbedJob& probed, const std::filesystem::path& out) {
  const HostShape shape = probed.cluster.cluster.shape();
  std::printf("%-6s%-9s%14s%10s%16s%10s%8s\n", "host", "workers", "link", "latency", "inside",
              "latency", "speed");
  for (int h = 0; h < shape.hosts(); ++h) {
    const HostSpec& host = probed.cluster.cluster.hosts[at(h)];
    const double speed = probed.cluster.speeds[at(shape.first_rank(h))];
    std::printf("%-6d%-9d%14s%10s%16s%10s%8.2f\n", h, host.workers,
                format_rate(host.link.rate_bytes_per_s).c_str(),
                format_duration(host.link.latency_s).c_str(),
                format_rate(host.inside.rate_bytes_per_s).c_str(),
                format_duration(host.inside.latency_s).c_str(), speed);
  }
  for (int h = 0; h < shape.hosts(); ++h) {
    const LinkSpec& device = probed.cluster.cluster.hosts[at(h)].device;
    if (!is_limited(device)) continue;
    std::printf("host %d: copies between a device and its host's memory have %s, latency %s\n", h,
                format_rate(device.rate_bytes_per_s).c_str(),
                format_duration(device.latency_s).c_str());
  }
  const Workload& workload = probed.workload.workload;
  std::printf("\ncompute per step  %s +- %s, of which forward %.0f %%; update %s\n",
              format_duration(workload.compute.mean_s).c_str(),
              format_duration(workload.compute.deviation_s).c_str(), 100 * workload.forward_share,
              format_duration(workload.update_s).c_str());
  std::printf("parameters        %lld in %zu buckets\n",
              static_cast<long long>(elements_of(workload)), workload.buckets.size());
  const std::string folder = out.empty() ? "FOLDER" : out.string();
  std::printf("\n%s: gossamer plan --cluster %s/cluster.toml --workload %s/workload.toml\n",
              out.empty() ? "with --out FOLDER" : "next", folder.c_str(), folder.c_str());
}

ProbedJob probe_threads(TrainRequest& request, const std::atomic<bool>& stop) {
  const Recipe& recipe = request.recipe;
  check_recipe(recipe);
  const Task task = open_task(recipe);
  const bool emulate = !recipe.cluster.link_rate.empty();
  if (recipe.cluster.gamma > 0) {
    fail_argument({.place = "probe",
                   .what = "gamma does not say how fast links are",
                   .remedy = "give --link-rate, e.g. 20Mbit/s"});
  }
  if (!emulate) {
    std::cerr << "gossamer: links between threads have no limit; give --link-rate, or start under "
                 "a launcher\n";
  }
  std::cerr << "gossamer: measuring links and compute, in less than a minute\n";
  const TrainContext context{.recipe = &recipe, .task = &task, .stop = &stop};
  ProbedJob result;
  std::mutex mutex;
  const double rate = emulate ? parse_rate(recipe.cluster.link_rate, "link_rate") : 0;
  run_workers(
      make_threads_transports(emulated_cluster(recipe.cluster, rate), {.emulate_links = emulate}),
      [&](Transport& transport) {
        ProbedJob own = probe_worker(context, transport);
        const std::lock_guard lock(mutex);
        result = std::move(own);
      });
  return result;
}

ProbedJob probe_process(TrainRequest& request, const LauncherEnv& env,
                        const std::atomic<bool>& stop) {
  TrainJob job(env, request.recipe.run.timeout_s);
  const Task task = begin_process(request.recipe, job, {"probe", request.says_hosts});
  job.require_same(shared_words(request.recipe, task));
  if (env.rank == 0) {
    std::cerr << "gossamer: " << name_of(env.launcher) << " has started " << describe(job.shape())
              << '\n';
  }
  const std::unique_ptr<Transport> transport = job.connect({.tls = request.recipe.cluster.tls});
  const TrainContext context{.recipe = &request.recipe, .task = &task, .stop = &stop};
  return probe_worker(context, *transport);
}

}  // namespace

int probe_command(int argc, char** argv) {
  TrainRequest request = parse_request(kProbeHelp, {argv + 1, argv + argc});
  const auto env = launcher_for("probe", request.transport);
  const bool speaks = !env || env->rank == 0;
  const InterruptGuard guard(
      [speaks] { return std::string(speaks ? "stopped; nothing was written" : ""); });
  const ProbedJob probed =
      env ? probe_process(request, *env, guard.stop()) : probe_threads(request, guard.stop());
  if (!speaks) return 0;
  write_files(probed, request.args.out);
  if (request.json) {
    std::cout << to_json(probed).dump() << '\n';
  } else {
    print_table(probed, request.args.out);
  }
  return 0;
}

}  // namespace gossamer
