#pragma once
/// Published measurements of decentralized training, as data to hold the model against.

#include <span>
#include <string_view>

namespace gossamer {

/// A row of the poster "Efficient Decentralized Training of DNNs" (Wang, KTH).
struct PosterRow {
  std::string_view task;
  std::string_view hardware;
  int hosts = 0;
  int workers_per_host = 0;
  std::string_view topology;  ///< as printed; its ring is the one-peer ring
  double hours = 0;
  double speed_up = 0;  ///< over all-reduce: 1 − T/T_AR
};
std::span<const PosterRow> poster_rows();

/// A point of Fig. 6 of Wang et al., "From promise to practice" (ICLR 2025): milliseconds per step
/// of the En-De transformer with a global batch that does not grow; A40 and A100 4 to a host, T4 8.
struct RuntimePoint {
  std::string_view hardware;
  int hosts = 0;
  int workers_per_host = 0;
  double allreduce_ms = 0;
  double aer_ms = 0;
};
std::span<const RuntimePoint> runtime_points();

/// The lecture's communication per step with 256 GPUs, 8 to a host.
struct CommunicationPoint {
  std::string_view model;
  double million_parameters = 0;
  double allreduce_ms = 0;
  double partial_average_ms = 0;
};
std::span<const CommunicationPoint> communication_points();

/// The lecture's ResNet-50 on ImageNet, 90 epochs with as many samples per step and GPU at every
/// size; 8 V100 to a host. "allreduce" is its P-SGD.
struct ImageNetPoint {
  std::string_view method;
  int hosts = 0;
  double hours = 0;
  double top1_percent = 0;
};
std::span<const ImageNetPoint> imagenet_points();

}  // namespace gossamer
