#pragma once
/// Where hosts and workers stand in a picture: hosts on a circle, their workers inside a box; or
/// workers in rows and columns.

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
  int host = 0;
};

/// All coordinates are around (0, 0), y downwards; `extent` is how far anything reaches from there.
struct PictureLayout {
  std::vector<PicturePoint> workers;
  std::vector<Box> hosts;  ///< a host has one; in rows and columns, one in each of its rows
  /// Middles of the texts; empty where they would say nothing.
  std::vector<PicturePoint> host_names;
  double extent = 0;
  int rows = 0;  ///< 0: on a circle
  int columns = 0;
  bool wraps = false;  ///< rows and columns are rings: a torus
};

constexpr double kWorkerRadius = 11;

constexpr double kGridCell = 64;

/// Hosts on a circle.
PictureLayout lay_out(const HostShape& shape);

/// Workers row by row.
PictureLayout lay_out_grid(const HostShape& shape, int rows, int columns);

}  // namespace gossamer
