#include "gossamer/cli/picture/links.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <map>
#include <numbers>
#include <utility>

#include "gossamer/base/index.h"
#include "gossamer/cli/picture/style.h"

namespace gossamer {
namespace {

constexpr double kStubEnd = 0.55 * kGridCell;

/// An off-diagonal weight; `both` where the other direction has the same.
struct Link {
  int receiver = 0;
  int sender = 0;
  double weight = 0;
  bool both = false;
};

std::vector<Link> links_of(const Round& round) {
  std::map<std::pair<int, int>, double> weights;
  for (int i = 0; i < round.workers; ++i) {
    for (const Entry& e : round.rows[at(i)]) {
      if (e.worker != i) weights[{i, e.worker}] = e.weight;
    }
  }
  std::vector<Link> links;
  for (const auto& [ends, weight] : weights) {
    const auto back = weights.find({ends.second, ends.first});
    const bool both = back != weights.end() && std::abs(back->second - weight) < 1e-12;
    if (both && ends.first > ends.second) continue;
    links.push_back({ends.first, ends.second, weight, both});
  }
  return links;
}

struct Curve {
  PicturePoint from;
  PicturePoint bend;
  PicturePoint to;
};

/// Between neighbours in a row or column, straight; around those between them, where there are
/// some. On a circle it bends a little: towards the middle, or to the left of its way where it has
/// one direction, so that there and back do not lie on each other.
PicturePoint bend_of(const Link& link, const PictureLayout& layout, const Curve& curve) {
  const double dx = curve.to.x - curve.from.x;
  const double dy = curve.to.y - curve.from.y;
  const PicturePoint middle{(curve.from.x + curve.to.x) / 2, (curve.from.y + curve.to.y) / 2};
  if (layout.rows == 0 && link.both) return {middle.x * 0.85, middle.y * 0.85};
  const bool is_next = std::hypot(dx, dy) < 1.1 * kGridCell;
  const double aside = layout.rows == 0 ? 0.12 : is_next && link.both ? 0 : 0.2;
  return {middle.x + aside * dy, middle.y - aside * dx};
}

Curve curve_of(const Link& link, const PictureLayout& layout) {
  Curve curve{layout.workers[at(link.sender)], {}, layout.workers[at(link.receiver)]};
  const double length = std::hypot(curve.to.x - curve.from.x, curve.to.y - curve.from.y);
  curve.bend = bend_of(link, layout, curve);
  // Ends at the workers' edges, with room for an arrow head.
  const auto towards_bend = [&](PicturePoint p, double distance) {
    const double bx = curve.bend.x - p.x;
    const double by = curve.bend.y - p.y;
    const double scale = distance / std::max(std::hypot(bx, by), 1e-9);
    return PicturePoint{p.x + bx * scale, p.y + by * scale};
  };
  const double gap = std::min(kWorkerRadius + 1, length / 3);
  const PicturePoint from = towards_bend(curve.from, gap);
  const PicturePoint to = towards_bend(curve.to, gap + (link.both ? 0 : 5));
  curve.from = from;
  curve.to = to;
  return curve;
}

std::string arrow_head(const Curve& curve, PicturePoint tip, int colour) {
  const double angle = std::atan2(tip.y - curve.to.y, tip.x - curve.to.x) * 180 / std::numbers::pi;
  return "<path d=\"M-4 -4 L4.5 0 L-4 4 Z\"" + filled(colour) + " transform=\"translate(" +
         shown(curve.to.x) + " " + shown(curve.to.y) + ") rotate(" + shown(angle) + ")\"/>\n";
}

/// Whether a link goes around the torus: from one end of a row or column to the other.
bool goes_around(const Link& link, const PictureLayout& layout) {
  if (!layout.wraps) return false;
  const int rows = std::abs(link.sender / layout.columns - link.receiver / layout.columns);
  const int columns = std::abs(link.sender % layout.columns - link.receiver % layout.columns);
  return (rows == 0 && columns > 1 && columns == layout.columns - 1) ||
         (columns == 0 && rows > 1 && rows == layout.rows - 1);
}

/// A link around the torus leaves at one side and comes back at the other.
std::string draw_stubs(const Link& link, const PictureLayout& layout, const std::string& look) {
  const PicturePoint from = layout.workers[at(link.sender)];
  const PicturePoint to = layout.workers[at(link.receiver)];
  const double length = std::hypot(to.x - from.x, to.y - from.y);
  const PicturePoint way{(from.x - to.x) / length, (from.y - to.y) / length};
  std::string out;
  for (const auto& [end, sign] : {std::pair{from, 1.0}, std::pair{to, -1.0}}) {
    const double near = sign * (kWorkerRadius + 1);
    const double far = sign * kStubEnd;
    out += "<path d=\"M" + shown(end.x + near * way.x) + " " + shown(end.y + near * way.y) + " L" +
           shown(end.x + far * way.x) + " " + shown(end.y + far * way.y) + "\"" + look +
           " stroke-dasharray=\"7 3 4 3 2 3\"/>\n";
  }
  return out;
}

}  // namespace

std::string shown(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.2f", value);
  std::string digits = text;
  while (digits.back() == '0') digits.pop_back();
  if (digits.back() == '.') digits.pop_back();
  return digits == "-0" ? "0" : digits;
}

std::string attribute(const char* name, double value) {
  return std::string(" ") + name + "=\"" + shown(value) + "\"";
}

std::vector<double> distinct_weights(const Round& round, bool diagonal) {
  std::vector<double> weights;
  for (int i = 0; i < round.workers; ++i) {
    for (const Entry& e : round.rows[at(i)]) {
      if ((e.worker == i) == diagonal) weights.push_back(e.weight);
    }
  }
  std::sort(weights.begin(), weights.end(), std::greater<>());
  const auto same = [](double a, double b) { return std::abs(a - b) < 1e-9; };
  weights.erase(std::unique(weights.begin(), weights.end(), same), weights.end());
  return weights;
}

int colour_of(double weight, const std::vector<double>& weights) {
  if (weights.size() < 2 || weights.size() > kMostWeightColours) return kLineColour;
  const auto found = std::find_if(weights.begin(), weights.end(),
                                  [&](double w) { return std::abs(w - weight) < 1e-9; });
  return 1 + static_cast<int>(found - weights.begin()) % kBrightColours;
}

std::string draw_links(const Round& round, const PictureLayout& layout) {
  const std::vector<Link> links = links_of(round);
  const std::vector<double> weights = distinct_weights(round, false);
  const bool dense = links.size() > 4 * layout.workers.size();
  std::string out;
  for (const Link& link : links) {
    const int colour = colour_of(link.weight, weights);
    const double width = (dense ? 0.6 : 1.0) + (dense ? 0.8 : 1.6) * link.weight / weights.front();
    const std::string look = stroked(colour) + attribute("stroke-width", width) +
                             attribute("stroke-opacity", dense ? 0.5 : 0.9);
    if (goes_around(link, layout)) {
      out += draw_stubs(link, layout, look);
      continue;
    }
    const Curve curve = curve_of(link, layout);
    out += "<path d=\"M" + shown(curve.from.x) + " " + shown(curve.from.y) + " Q" +
           shown(curve.bend.x) + " " + shown(curve.bend.y) + " " + shown(curve.to.x) + " " +
           shown(curve.to.y) + "\" fill=\"none\"" + look + "/>\n";
    if (!link.both) out += arrow_head(curve, layout.workers[at(link.receiver)], colour);
  }
  return out;
}

}  // namespace gossamer
