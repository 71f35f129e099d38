// Buckets of a device that is a thread-safe pretence: its copies out are over a while later.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "gossamer/base/index.h"
#include "gossamer/engine/engine.h"
#include "gossamer/engine/testing/engine_case.h"
#include "gossamer/engine/worker_threads.h"
#include "gossamer/graph/topology.h"

namespace gossamer {
namespace {

constexpr int kDeviceWorkers = 4;
constexpr int kDeviceSteps = 7;
constexpr std::size_t kDeviceCount = 700;
constexpr double kDeviceLr = 0.1;

using Numbers = std::vector<double>;

double pull(int rank, int step, std::size_t k) {
  return std::sin(static_cast<double>(k) + rank + 3.0 * step);
}

/// Copies out land when they have been asked for often enough; before, the outbox has rubbish.
class PretendedDevice final : public DeviceBucket {
 public:
  Numbers x;           ///< the parameters
  Numbers correction;  ///< where the host forms it
  bool fails = false;

  PretendedDevice(std::size_t count, double first) : x(count, first), correction(count) {}

  void load() override { x = correction; }
  void begin_correction() override {}
  void add_correction() override {
    for (std::size_t k = 0; k < x.size(); ++k) x[k] += correction[k];
  }
  void copy_out(void* into) override {
    into_ = static_cast<double*>(into);
    leaving_ = x;
    std::fill_n(into_, x.size(), std::nan(""));
    looks_ = 3;
  }
  bool is_out() const override {
    if (fails) throw std::runtime_error("the device is gone");
    if (looks_.fetch_sub(1) > 1) return false;
    std::ranges::copy(leaving_, into_);
    return true;
  }

 private:
  double* into_ = nullptr;
  Numbers leaving_;
  mutable std::atomic<int> looks_ = 0;
};

/// x⁺ = x + Σ_j w_ij (y_j − y_i) − lr g, with y what was sent.
std::array<Numbers, kDeviceWorkers> expected_of(const Schedule& schedule, bool mixes_after) {
  std::array<Numbers, kDeviceWorkers> x;
  for (int i = 0; i < kDeviceWorkers; ++i) x[at(i)].assign(kDeviceCount, i - 1.0);
  for (int step = 0; step < kDeviceSteps; ++step) {
    auto sent = x;
    for (int i = 0; i < kDeviceWorkers; ++i) {
      for (std::size_t k = 0; k < kDeviceCount; ++k) x[at(i)][k] -= kDeviceLr * pull(i, step, k);
    }
    if (mixes_after) sent = x;
    const Round round = round_at(schedule, step);
    for (int i = 0; i < kDeviceWorkers; ++i) {
      for (const Entry& entry : row_of(round, i)) {
        for (std::size_t k = 0; k < kDeviceCount; ++k) {
          x[at(i)][k] += entry.weight * (sent[at(entry.worker)][k] - sent[at(i)][k]);
        }
      }
    }
  }
  return x;
}

EngineOptions device_options(const std::string& topology, const std::string& pattern) {
  return {.schedule = make_topology(topology, {.shape = even_hosts(2, 2)}),
          .pattern = pattern,
          .optimizer = "none",
          .check_gradients = false,
          .timeout_s = 20};
}

void train_on_device(const EngineOptions& options, Transport& transport, PretendedDevice& device) {
  const int rank = transport.describe().rank;
  constexpr auto kCount = static_cast<std::int64_t>(kDeviceCount);
  Bucket bucket{
      .dtype = DType::f64,
      .count = kCount,
      .segments = {{.offset = 0, .count = kCount, .group = kNoStep, .x = device.correction.data()}},
      .device = &device};
  Engine engine(options, transport, {bucket});
  engine.start_at(0);
  for (int step = 0; step < kDeviceSteps; ++step) {
    for (std::size_t k = 0; k < kDeviceCount; ++k) {
      device.x[k] -= kDeviceLr * pull(rank, step, k);
    }
    engine.step();
  }
  engine.collectives().barrier();
}

std::vector<std::unique_ptr<Transport>> device_transports(bool over_net) {
  if (over_net) return make_net_team(kDeviceWorkers, {});
  return make_threads_transports(engine_case::free_links(even_hosts(2, 2)));
}

TEST(DeviceBucket, MixesWhatTheDeviceHas) {
  for (const bool over_net : {false, true}) {
    for (const std::string topology : {"ring", "complete", "aer", "one_peer_exponential"}) {
      for (const std::string pattern : {"cwa", "atc"}) {
        const EngineOptions options = device_options(topology, pattern);
        const auto expected = expected_of(options.schedule, pattern == "atc");
        run_workers(device_transports(over_net), [&](Transport& transport) {
          const int rank = transport.describe().rank;
          PretendedDevice device(kDeviceCount, rank - 1.0);
          train_on_device(options, transport, device);
          for (std::size_t k = 0; k < kDeviceCount; ++k) {
            ASSERT_NEAR(device.x[k], expected[at(rank)][k], 1e-12)
                << topology << ", " << pattern << ", worker " << rank << ", element " << k;
          }
        });
      }
    }
  }
}

TEST(DeviceBucket, GetsTheFirstWorkersParameters) {
  run_workers(device_transports(false), [&](Transport& transport) {
    const int rank = transport.describe().rank;
    PretendedDevice device(kDeviceCount, -1.0);
    std::ranges::fill(device.correction, 10.0 + rank);
    Bucket bucket{.dtype = DType::f64,
                  .count = kDeviceCount,
                  .segments = {{.offset = 0, .count = kDeviceCount, .x = device.correction.data()}},
                  .device = &device};
    Engine engine(device_options("ring", "cwa"), transport, {bucket});
    engine.start();
    EXPECT_EQ(device.x, Numbers(kDeviceCount, 10.0));
    engine.collectives().barrier();
  });
}

TEST(DeviceBucket, AnErrorOfTheDeviceEndsTheStep) {
  const auto transports = make_threads_transports({.hosts = {{.workers = 1}, {.workers = 1}}});
  PretendedDevice device(kDeviceCount, 0);
  device.fails = true;
  EngineOptions options{.schedule = make_topology("complete", {.shape = even_hosts(2, 1)}),
                        .optimizer = "none",
                        .check_gradients = false,
                        .timeout_s = 5};
  Bucket bucket{.dtype = DType::f64,
                .count = kDeviceCount,
                .segments = {{.offset = 0, .count = kDeviceCount, .x = device.correction.data()}},
                .device = &device};
  Engine engine(options, *transports[0], {bucket});
  engine.start_at(0);
  try {
    engine.step();
    FAIL() << "it went on";
  } catch (const std::runtime_error& error) {
    EXPECT_STREQ(error.what(), "the device is gone");
  }
}

}  // namespace
}  // namespace gossamer
