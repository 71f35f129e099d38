#include "gossamer/plan/workload_file.h"

#include <algorithm>
#include <sstream>
#include <vector>

#include "gossamer/base/errors.h"
#include "gossamer/base/toml.h"
#include "gossamer/base/units.h"
#include "gossamer/model/even_buckets.h"

namespace gossamer {
namespace {

constexpr std::string_view kKeys[] = {"parameters", "bucket_sizes",   "buckets", "dtype",
                                      "compute",    "deviation",      "jitter",  "forward_share",
                                      "update",     "ddp_link_share", "target"};
constexpr std::string_view kTargetKeys[] = {"steps", "global_batch", "noise_scale", "optimizer",
                                            "steps_ratio"};
constexpr std::string_view kDTypes[] = {"f32", "f64"};
constexpr std::string_view kJitters[] = {"normal", "lognormal"};
constexpr std::string_view kOptimizers[] = {"sgd",   "momentum",   "adam",
                                            "adamw", "accum_adam", "accum_adamw"};
constexpr std::int64_t kMostParameters = 10'000'000'000'000;
constexpr int kMostBuckets = 10'000;
constexpr double kLongest_s = 1e6;

void read_between(const TomlTable& table, std::string_view key, double low, double high,
                  double& into) {
  if (!table.read(key, into)) return;
  table.check(into >= low && into <= high, key,
              "from " + std::to_string(low) + " to " + std::to_string(high), std::to_string(into));
}

void read_time(const TomlTable& table, std::string_view key, double& into) {
  if (!table.read_duration(key, into)) return;
  table.check(into <= kLongest_s, key, "at most 1e6 s", std::to_string(into) + " s");
}

/// The index of the word under `key`, or −1.
int read_word(const TomlTable& table, std::string_view key,
              std::span<const std::string_view> valid) {
  std::string word;
  if (!table.read(key, word)) return -1;
  const auto found = std::ranges::find(valid, word);
  if (found == valid.end()) fail_unknown_name(table.place(key), key, word, valid);
  return static_cast<int>(found - valid.begin());
}

std::vector<std::int64_t> read_buckets(const TomlTable& table) {
  std::vector<std::int64_t> sizes;
  if (table.read("bucket_sizes", sizes)) {
    for (const char* key : {"parameters", "buckets"}) {
      table.check(!table.has(key), key, "left out where there are bucket_sizes", "both");
    }
    table.check(!sizes.empty() && sizes.size() <= kMostBuckets, "bucket_sizes",
                "1 to " + std::to_string(kMostBuckets) + " numbers",
                std::to_string(sizes.size()) + " of them");
    for (std::int64_t size : sizes) {
      table.check(size >= 0 && size <= kMostParameters, "bucket_sizes", "numbers from 0 to 1e13",
                  std::to_string(size));
    }
    return sizes;
  }
  table.require("parameters");
  std::int64_t parameters = 0;
  table.read("parameters", parameters);
  table.check(parameters >= 1 && parameters <= kMostParameters, "parameters", "from 1 to 1e13",
              std::to_string(parameters));
  int buckets = 8;
  if (table.read("buckets", buckets)) {
    table.check(buckets >= 1 && buckets <= kMostBuckets, "buckets",
                "from 1 to " + std::to_string(kMostBuckets), std::to_string(buckets));
  }
  return even_buckets(parameters, buckets);
}

ComputeTimes read_compute(const TomlTable& table) {
  ComputeTimes compute;
  table.require("compute");
  read_time(table, "compute", compute.mean_s);
  read_time(table, "deviation", compute.deviation_s);
  table.check(compute.deviation_s <= 10 * compute.mean_s, "deviation",
              "at most ten times the compute time", format_duration(compute.deviation_s));
  const bool varies = compute.deviation_s > 0;
  const int jitter = read_word(table, "jitter", kJitters);
  table.check(jitter < 0 || varies, "jitter", "left out where there is no deviation",
              "jitter without deviation");
  if (varies) compute.jitter = jitter == 1 ? Jitter::lognormal : Jitter::normal;
  return compute;
}

Target read_target(const TomlTable& table) {
  table.allow_only(kTargetKeys);
  Target target;
  if (table.read("steps", target.steps)) {
    table.check(target.steps >= 1, "steps", "at least 1", std::to_string(target.steps));
  }
  read_between(table, "global_batch", 1, 1e12, target.global_batch);
  read_between(table, "noise_scale", 1, 1e15, target.noise_scale);
  read_between(table, "steps_ratio", 0.1, 100, target.steps_ratio);
  const int optimizer = read_word(table, "optimizer", kOptimizers);
  if (optimizer >= 0) target.optimizer = kOptimizers[static_cast<std::size_t>(optimizer)];
  return target;
}

WorkloadFile read(const TomlTable& table) {
  table.allow_only(kKeys);
  WorkloadFile file;
  Workload& workload = file.workload;
  workload.buckets = read_buckets(table);
  if (read_word(table, "dtype", kDTypes) == 1) workload.dtype = DType::f64;
  workload.compute = read_compute(table);
  read_between(table, "forward_share", 0, 1, workload.forward_share);
  read_time(table, "update", workload.update_s);
  read_between(table, "ddp_link_share", 0.001, 1, workload.ddp_link_share);
  if (const auto target = table.table("target")) file.target = read_target(*target);
  return file;
}

}  // namespace

WorkloadFile load_workload(const std::string& path) { return read(load_toml(path)); }

WorkloadFile parse_workload(std::string_view text, std::string_view name) {
  return read(parse_toml(text, name));
}

Workload workload_on(const WorkloadFile& file, const ClusterFile& cluster) {
  Workload workload = file.workload;
  const bool alike = std::ranges::all_of(cluster.speeds, [](double speed) { return speed == 1; });
  if (alike) return workload;
  for (double speed : cluster.speeds) workload.compute.factors.push_back(1 / speed);
  return workload;
}

std::string to_toml(const WorkloadFile& file) {
  const Workload& workload = file.workload;
  const std::int64_t elements = elements_of(workload);
  const auto buckets = static_cast<int>(workload.buckets.size());
  std::ostringstream out;
  if (elements > 0 && workload.buckets == even_buckets(elements, buckets)) {
    out << "parameters = " << elements << "\nbuckets = " << buckets << '\n';
  } else {
    out << "bucket_sizes = [";
    for (int b = 0; b < buckets; ++b) {
      out << (b > 0 ? ", " : "") << workload.buckets[static_cast<std::size_t>(b)];
    }
    out << "]\n";
  }
  if (workload.dtype == DType::f64) out << "dtype = \"f64\"\n";
  const ComputeTimes& compute = workload.compute;
  out << "compute = \"" << shortest(compute.mean_s) << "s\"\n";
  if (compute.deviation_s > 0) {
    out << "deviation = \"" << shortest(compute.deviation_s) << "s\"\n";
    if (compute.jitter == Jitter::lognormal) out << "jitter = \"lognormal\"\n";
  }
  out << "forward_share = " << shortest(workload.forward_share) << '\n';
  out << "update = \"" << shortest(workload.update_s) << "s\"\n";
  if (workload.ddp_link_share < 1) {
    out << "ddp_link_share = " << shortest(workload.ddp_link_share) << '\n';
  }
  const Target& target = file.target;
  out << "\n[target]\nsteps = " << target.steps << '\n';
  if (target.global_batch > 0) out << "global_batch = " << shortest(target.global_batch) << '\n';
  if (target.noise_scale > 0) out << "noise_scale = " << shortest(target.noise_scale) << '\n';
  out << "optimizer = \"" << target.optimizer << "\"\n";
  if (target.steps_ratio > 0) out << "steps_ratio = " << shortest(target.steps_ratio) << '\n';
  return out.str();
}

}  // namespace gossamer
