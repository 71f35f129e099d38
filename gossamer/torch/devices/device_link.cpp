#include "gossamer/torch/devices/device_link.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <chrono>
#include <limits>

#include "gossamer/torch/devices/streams.h"

namespace gossamer {
namespace {

double copy_s(const at::Tensor& into, const at::Tensor& from, const c10::Stream& stream) {
  constexpr int kRounds = 3;
  double best = std::numeric_limits<double>::infinity();
  for (int round = 0; round < kRounds; ++round) {
    stream.synchronize();
    const auto begin = std::chrono::steady_clock::now();
    into.copy_(from, /*non_blocking=*/true);
    stream.synchronize();
    const auto taken = std::chrono::steady_clock::now() - begin;
    best = std::min(best, std::chrono::duration<double>(taken).count());
  }
  return best;
}

struct Seconds {
  double out = 0, in = 0;
};

Seconds copies_s(const c10::Device& device, std::int64_t bytes) {
  const c10::Stream stream = current_stream(device);
  const at::Tensor there = at::zeros({bytes}, at::dtype(at::kByte).device(device));
  const at::Tensor here = pinned_zeros(bytes, at::kByte);
  return {copy_s(here, there, stream), copy_s(there, here, stream)};
}

}  // namespace

DeviceLink measure_device_link(const c10::Device& device) {
  constexpr std::int64_t kBytes = std::int64_t{64} << 20;
  const Seconds one = copies_s(device, 1);
  const Seconds many = copies_s(device, kBytes);
  return {.out_bytes_per_s = static_cast<double>(kBytes) / many.out,
          .in_bytes_per_s = static_cast<double>(kBytes) / many.in,
          .latency_s = std::max(one.out, one.in)};
}

LinkSpec link_spec_of(const DeviceLink& link) {
  return {.rate_bytes_per_s = std::min(link.out_bytes_per_s, link.in_bytes_per_s),
          .latency_s = link.latency_s};
}

}  // namespace gossamer
