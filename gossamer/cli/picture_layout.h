#pragma once
/// Where hosts and workers stand in a picture: hosts on a circle, their workers inside a box.

#include <vector>

#include "gossamer/base/cluster.h"

namespace gossamer {

struct PicturePoint {
  double x = 0;
  double y = 0;
};

struct Box {
  PicturePoint middle;
  double width = 0;
  double height = 0;
};

/// All coordinates are around (0, 0), y downwards; `extent` is how far anything reaches from there.
struct PictureLayout {
  std::vector<PicturePoint> workers;
  std::vector<Box> hosts;
  /// Middles of the texts, outside of the circle; empty for one host.
  std::vector<PicturePoint> host_names;
  double extent = 0;
};

constexpr double kWorkerRadius = 11;

PictureLayout lay_out(const HostShape& shape);

}  // namespace gossamer
