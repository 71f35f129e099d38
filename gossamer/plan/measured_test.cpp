// What was measured on hosts with GPUs (docs/results/devices.md), beside what is predicted.

#include <gtest/gtest.h>

#include "gossamer/model/even_buckets.h"
#include "gossamer/plan/forecast.h"

namespace gossamer {
namespace {

struct Measured {
  const char* method;
  double link_bytes_per_s;
  double step_s;
};

double predicted_s(const Measured& row, std::int64_t parameters, double compute_s) {
  HostSpec host{1, {row.link_bytes_per_s, 50e-6}, {}, {.rate_bytes_per_s = 55e9}};
  host.host_rate_bytes_per_s = usual_host_rate(host);
  const Workload workload{.buckets = even_buckets(parameters, 8), .compute = {.mean_s = compute_s}};
  return forecast({.hosts = {host, host}}, workload, parse_method(row.method)).step_s;
}

// One H200 that two workers share, each as a host of its own; 67 million parameters. The
// all-reduces over loopback (4 GB/s here, more than any of them makes use of) are what the rates
// are fitted to.
TEST(Measured, StepsOnAnH200) {
  const Measured rows[] = {
      {"allreduce", 4e9, 0.171},
      {"allreduce:int8", 4e9, 0.190},  // fitted
      {"ddp", 1.25e9, 0.284},
      {"ddp:bf16", 1.25e9, 0.177},
      {"aer", 1.25e9, 0.157},
      {"aer:int8", 1.25e9, 0.151},
      {"allreduce", 1.25e9, 0.314},
      {"allreduce:int8", 1.25e9, 0.195},
      {"ddp", 0.125e9, 2.346},
      {"ddp:bf16", 0.125e9, 1.184},
      {"allreduce:int8", 0.125e9, 0.673},
  };
  for (const Measured& row : rows) {
    EXPECT_NEAR(predicted_s(row, 67'100'000, 0.147), row.step_s, 0.1 * row.step_s)
        << row.method << " at " << row.link_bytes_per_s;
  }
}

TEST(Measured, GptTwoAtTenGigabit) {
  for (const Measured& row : {Measured{"ddp", 1.25e9, 0.503}, {"aer:int8", 1.25e9, 0.201}}) {
    EXPECT_NEAR(predicted_s(row, 124'400'000, 0.195), row.step_s, 0.1 * row.step_s) << row.method;
  }
}

}  // namespace
}  // namespace gossamer
