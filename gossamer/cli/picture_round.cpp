#include "gossamer/cli/picture_round.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <functional>
#include <map>
#include <numbers>
#include <set>
#include <vector>

#include "gossamer/base/index.h"
#include "gossamer/cli/topology_report.h"

namespace gossamer {
namespace {

constexpr std::array<const char*, 9> kColours{"#64748b", "#2563eb", "#ea580c", "#059669", "#9333ea",
                                              "#db2777", "#0891b2", "#ca8a04", "#dc2626"};
constexpr int kInside = 0;  ///< the colour of groups inside one of several hosts
constexpr int kBright = 8;  ///< how many colours follow it
constexpr const char* kLine = "#475569";
constexpr const char* kAlone = "#94a3b8";
constexpr std::size_t kMostWeights = 5;

std::string attribute(const char* name, double value) {
  return std::string(" ") + name + "=\"" + shown(value) + "\"";
}

std::string segment(PicturePoint a, PicturePoint b, const std::string& colour, double width,
                    double opacity) {
  return "<line" + attribute("x1", a.x) + attribute("y1", a.y) + attribute("x2", b.x) +
         attribute("y2", b.y) + " stroke=\"" + colour + "\"" + attribute("stroke-width", width) +
         " stroke-linecap=\"round\"" + attribute("stroke-opacity", opacity) + "/>\n";
}

/// Which group colours a worker or a host shows; −1: none.
struct Colouring {
  std::vector<int> of_worker;
  std::vector<int> of_host;  ///< only where the whole host is in one group of several workers
};

Colouring colour_groups(const Round& round, const HostShape& shape) {
  Colouring colouring{std::vector<int>(at(round.workers), -1),
                      std::vector<int>(at(shape.hosts()), -1)};
  int next = 0;
  for (const auto& group : round.groups) {
    if (group.size() == 1) continue;
    std::map<int, int> members;
    for (int member : group) ++members[shape.host_of(member)];
    const bool inside = members.size() == 1 && shape.hosts() > 1;
    const int colour = inside ? kInside : 1 + next++ % kBright;
    for (int member : group) colouring.of_worker[at(member)] = colour;
    for (const auto& [host, count] : members) {
      if (count == shape.workers_per_host[at(host)]) colouring.of_host[at(host)] = colour;
    }
  }
  return colouring;
}

std::string draw_boxes(const PictureLayout& layout, const Colouring& colouring) {
  std::string out;
  for (std::size_t h = 0; h < layout.hosts.size(); ++h) {
    const Box& box = layout.hosts[h];
    const int colour = colouring.of_host[h];
    out += "<rect" + attribute("x", box.middle.x - box.width / 2) +
           attribute("y", box.middle.y - box.height / 2) + attribute("width", box.width) +
           attribute("height", box.height) + " rx=\"9\" ";
    if (colour < 0) {
      out += "fill=\"#f1f5f9\" stroke=\"#cbd5e1\"/>\n";
    } else {
      const std::string hue = kColours[at(colour)];
      // The same tint as 16 % of the colour, but opaque: lines pass behind the box.
      out += "fill=\"#ffffff\"/>\n<rect" + attribute("x", box.middle.x - box.width / 2) +
             attribute("y", box.middle.y - box.height / 2) + attribute("width", box.width) +
             attribute("height", box.height) + " rx=\"9\" fill=\"" + hue +
             "\" fill-opacity=\"0.16\" stroke=\"" + hue + "\"/>\n";
    }
    if (layout.host_names.empty()) continue;
    const PicturePoint& name = layout.host_names[h];
    out += "<text" + attribute("x", name.x) + attribute("y", name.y + 3.5) +
           " class=\"host\">host " + std::to_string(h) + "</text>\n";
  }
  return out;
}

std::string draw_workers(const PictureLayout& layout, const Colouring& colouring) {
  std::string out;
  for (std::size_t w = 0; w < layout.workers.size(); ++w) {
    const PicturePoint& p = layout.workers[w];
    const int colour = colouring.of_worker[w];
    const std::string hue = colour < 0 ? kAlone : kColours[at(colour)];
    out += "<circle" + attribute("cx", p.x) + attribute("cy", p.y) + attribute("r", kWorkerRadius) +
           " fill=\"" + (colour < 0 ? "#ffffff" : hue) + "\" stroke=\"" + hue +
           "\" stroke-width=\"1.6\"/>\n<text" + attribute("x", p.x) + attribute("y", p.y + 3.8) +
           " class=\"rank\"" + (colour < 0 ? "" : " style=\"fill:#ffffff\"") + ">" +
           std::to_string(w) + "</text>\n";
  }
  return out;
}

/// What a group joins: whole hosts as one point each, other workers by themselves.
std::vector<PicturePoint> joints(const std::vector<int>& group, const HostShape& shape,
                                 const PictureLayout& layout, const Colouring& colouring) {
  std::vector<PicturePoint> points;
  std::set<int> hosts;
  for (int member : group) {
    const int host = shape.host_of(member);
    if (colouring.of_host[at(host)] < 0) {
      points.push_back(layout.workers[at(member)]);
    } else if (hosts.insert(host).second) {
      points.push_back(layout.hosts[at(host)].middle);
    }
  }
  return points;
}

/// Two are joined by a band; more meet in a point between them.
std::string draw_group(const std::vector<PicturePoint>& points, const std::string& hue,
                       bool only_one) {
  const double width = 5;
  if (points.size() < 2) return {};
  if (points.size() == 2) return segment(points[0], points[1], hue, width, 0.55);
  PicturePoint hub{0, 0};
  for (const PicturePoint& p : points) {
    hub.x += p.x / static_cast<double>(points.size());
    hub.y += p.y / static_cast<double>(points.size());
  }
  // Several groups around the circle would all meet in its middle; each keeps to its own side.
  if (!only_one) {
    hub.x = 0.75 * hub.x + 0.25 * points.front().x;
    hub.y = 0.75 * hub.y + 0.25 * points.front().y;
  }
  std::string out;
  for (const PicturePoint& p : points) out += segment(p, hub, hue, 3.5, 0.5);
  return out + "<circle" + attribute("cx", hub.x) + attribute("cy", hub.y) + " r=\"5\" fill=\"" +
         hue + "\"/>\n";
}

std::string draw_groups(const Round& round, const HostShape& shape, const PictureLayout& layout,
                        Colouring colouring) {
  // The workers of the only host are joined one by one, not as a host.
  if (shape.hosts() == 1) colouring.of_host.assign(1, -1);
  std::vector<std::vector<PicturePoint>> points;
  for (const auto& group : round.groups) points.push_back(joints(group, shape, layout, colouring));
  const auto meeting = std::count_if(points.begin(), points.end(),
                                     [](const auto& joined) { return joined.size() > 2; });
  std::string out;
  for (std::size_t g = 0; g < round.groups.size(); ++g) {
    const int colour = colouring.of_worker[at(round.groups[g].front())];
    if (colour >= 0) out += draw_group(points[g], kColours[at(colour)], meeting == 1);
  }
  return out;
}

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

/// The different weights on (or off) the diagonal, to 1e-9, in falling order.
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

/// A colour for each of a few different weights; one neutral colour where there are many or one.
std::string colour_of(double weight, const std::vector<double>& weights) {
  if (weights.size() < 2 || weights.size() > kMostWeights) return kLine;
  const auto found = std::find_if(weights.begin(), weights.end(),
                                  [&](double w) { return std::abs(w - weight) < 1e-9; });
  return kColours[at(1 + static_cast<int>(found - weights.begin()) % kBright)];
}

/// A curve that bends a little: towards the middle, or to the left of its way where it has one
/// direction, so that there and back do not lie on each other.
struct Curve {
  PicturePoint from;
  PicturePoint bend;
  PicturePoint to;
};

Curve curve_of(const Link& link, const PictureLayout& layout) {
  Curve curve{layout.workers[at(link.sender)], {}, layout.workers[at(link.receiver)]};
  const double dx = curve.to.x - curve.from.x;
  const double dy = curve.to.y - curve.from.y;
  const double length = std::hypot(dx, dy);
  const PicturePoint middle{(curve.from.x + curve.to.x) / 2, (curve.from.y + curve.to.y) / 2};
  curve.bend = link.both ? PicturePoint{middle.x * 0.85, middle.y * 0.85}
                         : PicturePoint{middle.x + 0.12 * dy, middle.y - 0.12 * dx};
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

std::string arrow_head(const Curve& curve, PicturePoint tip, const std::string& colour) {
  const double angle = std::atan2(tip.y - curve.to.y, tip.x - curve.to.x) * 180 / std::numbers::pi;
  return "<path d=\"M-4 -4 L4.5 0 L-4 4 Z\" fill=\"" + colour + "\" transform=\"translate(" +
         shown(curve.to.x) + " " + shown(curve.to.y) + ") rotate(" + shown(angle) + ")\"/>\n";
}

std::string draw_links(const Round& round, const PictureLayout& layout) {
  const std::vector<Link> links = links_of(round);
  const std::vector<double> weights = distinct_weights(round, false);
  const bool dense = links.size() > 4 * layout.workers.size();
  std::string out;
  for (const Link& link : links) {
    const Curve curve = curve_of(link, layout);
    const std::string colour = colour_of(link.weight, weights);
    const double width = (dense ? 0.6 : 1.0) + (dense ? 0.8 : 1.6) * link.weight / weights.front();
    out += "<path d=\"M" + shown(curve.from.x) + " " + shown(curve.from.y) + " Q" +
           shown(curve.bend.x) + " " + shown(curve.bend.y) + " " + shown(curve.to.x) + " " +
           shown(curve.to.y) + "\" fill=\"none\" stroke=\"" + colour + "\"" +
           attribute("stroke-width", width) + attribute("stroke-opacity", dense ? 0.5 : 0.9) +
           "/>\n";
    if (!link.both) out += arrow_head(curve, layout.workers[at(link.receiver)], colour);
  }
  return out;
}

std::string range_of(const std::vector<double>& weights) {
  if (weights.size() == 1) return as_fraction(weights.front());
  return as_fraction(weights.back()) + " to " + as_fraction(weights.front());
}

std::string describe_groups(const Round& round) {
  std::map<std::size_t, int, std::greater<>> sizes;
  for (const auto& group : round.groups) ++sizes[group.size()];
  std::string text;
  for (const auto& [size, count] : sizes) {
    if (!text.empty()) text += ", ";
    const std::string share = ": 1/" + std::to_string(size);
    if (size == 1) text += std::to_string(count) + " alone";
    if (size == 2) text += (count == 1 ? "pair" : "pairs") + share;
    if (size > 2) text += (count == 1 ? "group of " : "groups of ") + std::to_string(size) + share;
  }
  return text;
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

std::string draw_round(const Round& round, const HostShape& shape, const PictureLayout& layout) {
  const Colouring colouring = colour_groups(round, shape);
  const std::string boxes = draw_boxes(layout, colouring);
  const std::string workers = draw_workers(layout, colouring);
  if (is_partition(round)) {
    const std::string groups = draw_groups(round, shape, layout, colouring);
    return shape.hosts() == 1 ? boxes + groups + workers : groups + boxes + workers;
  }
  return boxes + draw_links(round, layout) + workers;
}

std::string describe_weights(const Round& round) {
  if (is_partition(round)) return describe_groups(round);
  const std::vector<double> given = distinct_weights(round, false);
  if (given.empty()) return "everybody keeps its own";
  std::string text = "from neighbours ";
  if (given.size() > kMostWeights) {
    text += range_of(given) + " (thicker: more)";
  } else {
    for (double weight : given) {
      text += "<tspan font-weight=\"700\" fill=\"" + colour_of(weight, given) + "\">" +
              as_fraction(weight) + "</tspan> ";
    }
    text.pop_back();
  }
  return text + ", kept " + range_of(distinct_weights(round, true));
}

}  // namespace gossamer
