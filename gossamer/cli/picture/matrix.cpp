#include "gossamer/cli/picture/matrix.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>
#include <utility>
#include <vector>

#include "gossamer/base/index.h"
#include "gossamer/cli/picture/links.h"
#include "gossamer/cli/picture/round.h"
#include "gossamer/cli/picture/style.h"

namespace gossamer {
namespace {

constexpr double kLabels = 30;  // for the numbers of workers, at the left and above
constexpr double kRight = 14;
constexpr int kMostBorders = 64;
constexpr int kGreys = 12;  // how many strengths the eye tells apart

/// Colour, and strength in twelfths.
using Look = std::pair<int, int>;

/// Cells from `first` up to `last` of a row.
struct Run {
  int row = 0;
  int first = 0;
  int last = 0;
};

using Cells = std::map<Look, std::vector<Run>>;

void add_cell(Cells& cells, Look look, int row, int column) {
  std::vector<Run>& runs = cells[look];
  if (!runs.empty() && runs.back().row == row && runs.back().last == column) {
    ++runs.back().last;
  } else {
    runs.push_back({row, column, column + 1});
  }
}

Cells cells_of_groups(const Round& round, const HostShape& shape) {
  const Colouring colouring = colour_groups(round, shape);
  Cells cells;
  for (const auto& group : round.groups) {
    std::vector<int> members = group;
    std::sort(members.begin(), members.end());
    const int colour = colouring.of_worker[at(members.front())];
    const Look look{colour < 0 ? kAloneColour : colour, kGreys};
    for (int row : members) {
      for (int column : members) add_cell(cells, look, row, column);
    }
  }
  return cells;
}

Cells cells_of_weights(const Round& round) {
  double most = 0;
  for (const auto& row : round.rows) {
    for (const Entry& e : row) most = std::max(most, e.weight);
  }
  Cells cells;
  for (int i = 0; i < round.workers; ++i) {
    std::vector<Entry> row = round.rows[at(i)];
    std::sort(row.begin(), row.end(),
              [](const Entry& a, const Entry& b) { return a.worker < b.worker; });
    for (const Entry& e : row) {
      const int strength = static_cast<int>(std::ceil(kGreys * std::max(0.2, e.weight / most)));
      add_cell(cells, {1, strength}, i, e.worker);
    }
  }
  return cells;
}

std::string label(double x, double y, const char* style, const std::string& words) {
  return "<text" + attribute("x", x) + attribute("y", y) + " class=\"" + style + "\">" + words +
         "</text>\n";
}

}  // namespace

std::string draw_matrix(const Round& round, const HostShape& shape, double side) {
  const int n = round.workers;
  const double left = -side / 2 + kLabels;
  const double cell = (side - kLabels - kRight) / n;
  const double top = left;
  const double end = left + n * cell;
  std::string out = "<rect" + attribute("x", left) + attribute("y", top) +
                    attribute("width", n * cell) + attribute("height", n * cell) +
                    " class=\"box\"/>\n";
  const Cells cells = is_partition(round) ? cells_of_groups(round, shape) : cells_of_weights(round);
  for (const auto& [look, runs] : cells) {
    out += "<path" + filled(look.first) + attribute("fill-opacity", look.second * 1.0 / kGreys) +
           " d=\"";
    for (const Run& run : runs) {
      const double width = (run.last - run.first) * cell;
      out += "M" + shown(left + run.first * cell) + " " + shown(top + run.row * cell) + "h" +
             shown(width) + "v" + shown(cell) + "h" + shown(-width) + "z";
    }
    out += "\"/>\n";
  }
  if (shape.hosts() > 1 && shape.hosts() < n && shape.hosts() <= kMostBorders) {
    std::string border;
    int worker = 0;
    for (int host = 0; host + 1 < shape.hosts(); ++host) {
      worker += shape.workers_per_host[at(host)];
      const std::string at_worker = shown(left + worker * cell);
      border += "M" + at_worker + " " + shown(top) + "V" + shown(end) + "M" + shown(left) + " " +
                at_worker + "H" + shown(end);
    }
    out += "<path class=\"border\" d=\"" + border + "\"/>\n";
  }
  const int every = std::max(1, (n + 7) / 8);
  for (int worker = 0; worker < n; worker += every) {
    const double middle = left + (worker + 0.5) * cell;
    out += label(middle, top - 5, "tick", std::to_string(worker));
    out += label(left - 5, middle + 3.5, "tick left", std::to_string(worker));
  }
  return out;
}

std::string describe_matrix(const Round& round) {
  if (is_partition(round)) return describe_weights(round);
  const std::vector<double> given = distinct_weights(round, false);
  if (given.empty()) return describe_weights(round);
  return "from others " + describe_range(given) + ", kept " +
         describe_range(distinct_weights(round, true));
}

}  // namespace gossamer
