#include "gossamer/cli/picture/layout.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "gossamer/base/index.h"

namespace gossamer {
namespace {

constexpr double kPi = std::numbers::pi;
constexpr double kCell = 30;
constexpr double kPadding = 6;
constexpr double kBoxGap = 26;
constexpr double kNameGap = 11;
constexpr double kNameHalfWidth = 20;

/// Clockwise from the top.
PicturePoint on_circle(double radius, int index, int count) {
  const double angle = 2 * kPi * index / count - kPi / 2;
  return {radius * std::cos(angle), radius * std::sin(angle)};
}

double circle_radius(double distance, int count) {
  return count < 2 ? 0 : distance / (2 * std::sin(kPi / count));
}

/// Workers of the only host stand on a circle of their own.
PictureLayout one_host(int workers) {
  PictureLayout layout;
  const double radius = std::max(workers > 1 ? 48.0 : 0.0, circle_radius(kCell + 8, workers));
  for (int k = 0; k < workers; ++k) layout.workers.push_back(on_circle(radius, k, workers));
  const double side = 2 * (radius + kWorkerRadius + 2.5 * kPadding);
  layout.hosts.push_back({{0, 0}, side, side, 0});
  layout.extent = side / 2 + 4;
  return layout;
}

Box box_for(int workers) {
  const int columns = static_cast<int>(std::ceil(std::sqrt(workers)));
  const int rows = (workers + columns - 1) / columns;
  return {{0, 0}, columns * kCell + kPadding, rows * kCell + kPadding, 0};
}

/// Row by row inside the box; a last row that is not full stands in the middle.
void place_workers(PictureLayout& layout, const Box& box, int workers) {
  const int columns = static_cast<int>(std::ceil(std::sqrt(workers)));
  const int rows = (workers + columns - 1) / columns;
  for (int k = 0; k < workers; ++k) {
    const int row = k / columns;
    const int in_row = std::min(columns, workers - row * columns);
    layout.workers.push_back({box.middle.x + (k % columns - (in_row - 1) / 2.0) * kCell,
                              box.middle.y + (row - (rows - 1) / 2.0) * kCell});
  }
}

/// How far a box reaches from its middle in the direction away from the origin.
double reach(const Box& box) {
  const double distance = std::hypot(box.middle.x, box.middle.y);
  if (distance == 0) return 0;
  const double x = std::abs(box.middle.x) / distance;
  const double y = std::abs(box.middle.y) / distance;
  return std::min(x > 1e-9 ? box.width / 2 / x : 1e9, y > 1e-9 ? box.height / 2 / y : 1e9);
}

/// Outside of the box, further out where the text lies beside it rather than above or below.
PicturePoint name_of(const Box& box, double radius) {
  const double sideways = std::abs(box.middle.x) / radius;
  const double out = (radius + reach(box) + kNameGap + sideways * kNameHalfWidth / 2) / radius;
  return {box.middle.x * out, box.middle.y * out};
}

}  // namespace

PictureLayout lay_out(const HostShape& shape) {
  const int hosts = shape.hosts();
  if (hosts == 1) return one_host(shape.workers());
  double largest = 0;
  for (int workers : shape.workers_per_host) {
    const Box box = box_for(workers);
    largest = std::max(largest, std::hypot(box.width, box.height));
  }
  const double radius = std::max(64.0, circle_radius(largest + kBoxGap, hosts));
  PictureLayout layout;
  for (int host = 0; host < hosts; ++host) {
    const int workers = shape.workers_per_host[at(host)];
    Box box = box_for(workers);
    box.host = host;
    box.middle = on_circle(radius, host, hosts);
    place_workers(layout, box, workers);
    const PicturePoint name = name_of(box, radius);
    layout.host_names.push_back(name);
    layout.hosts.push_back(box);
    const double furthest =
        std::max(std::abs(box.middle.x) + box.width / 2, std::abs(box.middle.y) + box.height / 2);
    layout.extent = std::max({layout.extent, furthest + 4, std::abs(name.x) + kNameHalfWidth,
                              std::abs(name.y) + kNameGap});
  }
  return layout;
}

PictureLayout lay_out_grid(const HostShape& shape, int rows, int columns) {
  PictureLayout layout{.rows = rows, .columns = columns};
  const auto place = [&](int worker) {
    return PicturePoint{(worker % columns - (columns - 1) / 2.0) * kGridCell,
                        (worker / columns - (rows - 1) / 2.0) * kGridCell};
  };
  for (int worker = 0; worker < shape.workers(); ++worker) {
    layout.workers.push_back(place(worker));
    const int host = shape.host_of(worker);
    const bool goes_on =
        worker % columns > 0 && !layout.hosts.empty() && layout.hosts.back().host == host;
    if (goes_on) {
      layout.hosts.back().width += kGridCell;
      layout.hosts.back().middle.x += kGridCell / 2;
    } else {
      layout.hosts.push_back({layout.workers.back(), kCell + kPadding, kCell + kPadding, host});
    }
  }
  if (shape.hosts() == 1) {
    layout.hosts = {{{0, 0}, columns * kGridCell, rows * kGridCell, 0}};
  } else if (shape.hosts() < shape.workers()) {
    // Beside the link upwards of its first worker.
    for (int host = 0, worker = 0; host < shape.hosts(); ++host) {
      const PicturePoint first = layout.workers[at(worker)];
      layout.host_names.push_back({first.x + kNameHalfWidth, first.y - kCell / 2 - kNameGap});
      worker += shape.workers_per_host[at(host)];
    }
  }
  layout.extent = (std::max(rows, columns) * kGridCell + kPadding) / 2;
  return layout;
}

}  // namespace gossamer
