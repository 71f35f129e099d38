#include "gossamer/cli/picture/round.h"

#include <algorithm>
#include <functional>
#include <map>
#include <set>
#include <vector>

#include "gossamer/base/index.h"
#include "gossamer/cli/picture/links.h"
#include "gossamer/cli/picture/style.h"
#include "gossamer/cli/topology/report.h"

namespace gossamer {
namespace {

std::string segment(PicturePoint a, PicturePoint b, int colour, double width, double opacity) {
  return "<line" + attribute("x1", a.x) + attribute("y1", a.y) + attribute("x2", b.x) +
         attribute("y2", b.y) + stroked(colour) + attribute("stroke-width", width) +
         " stroke-linecap=\"round\"" + attribute("stroke-opacity", opacity) + "/>\n";
}

std::string rectangle(const Box& box) {
  return "<rect" + attribute("x", box.middle.x - box.width / 2) +
         attribute("y", box.middle.y - box.height / 2) + attribute("width", box.width) +
         attribute("height", box.height) + " rx=\"9\"";
}

std::string draw_boxes(const PictureLayout& layout, const Colouring& colouring) {
  std::string out;
  for (const Box& box : layout.hosts) {
    const int colour = colouring.of_host[at(box.host)];
    if (colour < 0) {
      out += rectangle(box) + " class=\"box\"/>\n";
      continue;
    }
    // A tint, but opaque: lines pass behind the box.
    const std::string number = std::to_string(colour);
    out += rectangle(box) + " class=\"cover\"/>\n" + rectangle(box) + " class=\"f" + number + " s" +
           number + "\" fill-opacity=\"0.16\"/>\n";
  }
  for (std::size_t h = 0; h < layout.host_names.size(); ++h) {
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
    const bool is_alone = colouring.of_worker[w] < 0;
    const std::string number = std::to_string(is_alone ? kAloneColour : colouring.of_worker[w]);
    out += "<circle" + attribute("cx", p.x) + attribute("cy", p.y) + attribute("r", kWorkerRadius) +
           " class=\"" + (is_alone ? "cover" : "f" + number) + " s" + number +
           "\" stroke-width=\"1.6\"/>\n<text" + attribute("x", p.x) + attribute("y", p.y + 3.8) +
           " class=\"rank" + (is_alone ? "" : " joined") + "\">" + std::to_string(w) + "</text>\n";
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
      const auto box = std::find_if(layout.hosts.begin(), layout.hosts.end(),
                                    [&](const Box& each) { return each.host == host; });
      points.push_back(box->middle);
    }
  }
  return points;
}

/// Two are joined by a band; more meet in a point between them.
std::string draw_group(const std::vector<PicturePoint>& points, int hue, bool only_one) {
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
  return out + "<circle" + attribute("cx", hub.x) + attribute("cy", hub.y) + " r=\"5\"" +
         filled(hue) + "/>\n";
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
    if (colour >= 0) out += draw_group(points[g], colour, meeting == 1);
  }
  return out;
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

Colouring colour_groups(const Round& round, const HostShape& shape) {
  Colouring colouring{std::vector<int>(at(round.workers), -1),
                      std::vector<int>(at(shape.hosts()), -1)};
  int next = 0;
  for (const auto& group : round.groups) {
    if (group.size() == 1) continue;
    std::map<int, int> members;
    for (int member : group) ++members[shape.host_of(member)];
    const bool inside = members.size() == 1 && shape.hosts() > 1;
    const int colour = inside ? kInsideColour : 1 + next++ % kBrightColours;
    for (int member : group) colouring.of_worker[at(member)] = colour;
    for (const auto& [host, count] : members) {
      if (count == shape.workers_per_host[at(host)]) colouring.of_host[at(host)] = colour;
    }
  }
  return colouring;
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

std::string describe_range(const std::vector<double>& weights) {
  if (weights.size() == 1) return as_fraction(weights.front());
  return as_fraction(weights.back()) + " to " + as_fraction(weights.front());
}

std::string describe_weights(const Round& round) {
  if (is_partition(round)) return describe_groups(round);
  const std::vector<double> given = distinct_weights(round, false);
  if (given.empty()) return "everybody keeps its own";
  std::string text = "from neighbours ";
  if (given.size() > kMostWeightColours) {
    text += describe_range(given) + " (thicker: more)";
  } else {
    for (double weight : given) {
      text += "<tspan font-weight=\"700\"" + filled(colour_of(weight, given)) + ">" +
              as_fraction(weight) + "</tspan> ";
    }
    text.pop_back();
  }
  return text + ", kept " + describe_range(distinct_weights(round, true));
}

}  // namespace gossamer
