#include <algorithm>
#include <cmath>
#include <vector>

#include "gossamer/cli/picture/layout.h"
#include "gossamer/cli/picture/links.h"
#include "gossamer/cli/picture/matrix.h"
#include "gossamer/cli/picture/round.h"
#include "gossamer/cli/picture/style.h"
#include "gossamer/cli/topology/report.h"
#include "gossamer/graph/weights.h"
#include "gossamer/recipe/host_shape.h"

namespace gossamer {
namespace {

constexpr std::size_t kMostPanels = 24;
constexpr double kMargin = 32;
constexpr double kGap = 20;
constexpr double kFactsLine = 17;
constexpr double kPanelHead = 34;
constexpr double kPanelFoot = 34;

// More workers than these are shown as the matrix W: of a circle, and of rows and columns.
constexpr int kMostOnCircle = 24;
constexpr int kMostHostsOfGroups = 16;
constexpr int kMostInGroups = 128;
constexpr int kMostInGrid = 100;
constexpr double kMatrixExtent = 150;

std::string text(double x, double y, const char* style, const std::string& words) {
  return "<text x=\"" + shown(x) + "\" y=\"" + shown(y) + "\" class=\"" + style + "\">" + words +
         "</text>\n";
}

/// How the panels are arranged.
struct Panels {
  std::size_t count = 1;
  std::size_t columns = 1;
  double side = 300;
  double top = 0;  ///< where the first row begins
  double step_x() const { return side + kGap; }
  double step_y() const { return side + kPanelHead + kPanelFoot + kGap; }
  double width() const { return 2 * kMargin + static_cast<double>(columns) * step_x() - kGap; }
  double height() const {
    const auto rows = static_cast<double>((count + columns - 1) / columns);
    return top + rows * step_y() - kGap + kMargin;
  }
};

Panels arrange(std::size_t rounds, double extent) {
  Panels panels{.count = std::min(rounds, kMostPanels)};
  const std::size_t most_columns = panels.count > 12 ? 4 : panels.count == 4 ? 2 : 3;
  // Few columns, for phones; 4 rounds are 2 + 2.
  panels.columns = std::min(panels.count, most_columns);
  const double most = panels.count == 1 ? 520 : (panels.count <= 4 ? 360 : 280);
  panels.side = std::clamp(2.6 * extent, panels.count == 1 ? 400.0 : 240.0, most);
  return panels;
}

std::string payloads(double amount) {
  return as_fraction(amount) + (amount > 0 && amount <= 1 ? " payload" : " payloads");
}

std::vector<std::string> facts(const TopologyReport& report) {
  const std::size_t rounds = report.rounds.size();
  const std::string steps = rounds == 1 ? "1 round" : std::to_string(rounds) + " rounds";
  const bool repeats = report.schedule.period > 0;
  const Stochasticity kind = report.schedule.stochasticity;
  const std::string effect = kind == Stochasticity::column ? "columns sum to 1: for push_sum"
                             : kind == Stochasticity::row  ? "rows sum to 1: for no pattern"
                             : report.exact_average        ? "exact average after " + steps
                                                    : as_fraction(report.period_contraction) +
                                                          " of a disagreement left after " + steps;
  return {describe(report.schedule.shape),
          repeats ? "period " + steps : "a new graph in every step", effect,
          payloads(report.bytes_per_host_per_step) + " between hosts per host and step"};
}

/// As many facts per line as the width takes.
std::vector<std::string> lines_of(const std::vector<std::string>& parts, double width) {
  constexpr double kLetter = 7;
  std::vector<std::string> lines;
  for (const std::string& part : parts) {
    const bool fits = !lines.empty() &&
                      static_cast<double>(lines.back().size() + part.size() + 3) * kLetter < width;
    if (fits) {
      lines.back() += " · " + part;
    } else {
      lines.push_back(part);
    }
  }
  return lines;
}

std::string header(const TopologyReport& report, const std::vector<std::string>& lines) {
  std::string title = report.name;
  for (const std::string& modifier : report.modifiers) title += " + " + modifier;
  std::string out = text(kMargin, 42, "title", title);
  for (std::size_t k = 0; k < lines.size(); ++k) {
    out += text(kMargin, 66 + static_cast<double>(k) * kFactsLine, "facts", lines[k]);
  }
  return out;
}

/// Whether its workers can be told apart when each is drawn; else the matrix is shown.
bool is_drawn_one_by_one(const TopologyReport& report, const PictureLayout& layout) {
  const HostShape& shape = report.schedule.shape;
  if (layout.rows > 0) return shape.workers() <= kMostInGrid;
  const bool has_groups = std::all_of(report.rounds.begin(), report.rounds.end(), is_partition);
  return shape.workers() <= kMostOnCircle ||
         (has_groups && shape.hosts() <= kMostHostsOfGroups && shape.workers() <= kMostInGroups);
}

PictureLayout layout_of(const TopologyReport& report) {
  const HostShape& shape = report.schedule.shape;
  const Sides sides = near_square(shape.workers());
  const bool is_torus = report.name == "torus";
  if (sides.rows == 1 || !(is_torus || report.name == "grid")) return lay_out(shape);
  PictureLayout layout = lay_out_grid(shape, sides.rows, sides.columns);
  layout.wraps = is_torus;
  if (is_torus) layout.extent += kGridCell / 8;
  return layout;
}

std::string panel(const TopologyReport& report, const PictureLayout& layout, const Panels& panels,
                  std::size_t t) {
  const double x = kMargin + static_cast<double>(t % panels.columns) * panels.step_x();
  const double y = panels.top + static_cast<double>(t / panels.columns) * panels.step_y();
  const double scale = panels.side / (2 * layout.extent + 12);
  const double middle = y + kPanelHead + panels.side / 2;
  std::string out = "<rect x=\"" + shown(x) + "\" y=\"" + shown(y) + "\" width=\"" +
                    shown(panels.side) + "\" height=\"" +
                    shown(panels.side + kPanelHead + kPanelFoot) +
                    "\" rx=\"12\" class=\"panel\"/>\n";
  out += text(x + 14, y + 23, "head",
              panels.count == 1 ? "every round" : "round " + std::to_string(t));
  const bool is_matrix = !is_drawn_one_by_one(report, layout);
  const Round& round = report.rounds[t];
  const HostShape& shape = report.schedule.shape;
  out += "<g transform=\"translate(" + shown(x + panels.side / 2) + " " + shown(middle) + ")";
  out += is_matrix ? "\">\n" : " scale(" + shown(std::min(scale, 1.7)) + ")\">\n";
  out += is_matrix ? draw_matrix(round, shape, panels.side) : draw_round(round, shape, layout);
  return out + "</g>\n" +
         text(x + 14, y + kPanelHead + panels.side + 20, "foot",
              is_matrix ? describe_matrix(round) : describe_weights(round));
}

}  // namespace

std::string to_svg(const TopologyReport& report) {
  const PictureLayout layout = layout_of(report);
  const bool is_matrix = !is_drawn_one_by_one(report, layout);
  Panels panels = arrange(report.rounds.size(), is_matrix ? kMatrixExtent : layout.extent);
  const double width = panels.width();
  std::vector<std::string> words = facts(report);
  if (is_matrix) words.push_back("row: who takes, column: from whom");
  const std::vector<std::string> lines = lines_of(words, width - 2 * kMargin);
  panels.top = 75 + kFactsLine * static_cast<double>(lines.size());
  const bool cut = report.rounds.size() > panels.count;
  const double height = panels.height() + (cut ? 18 : 0);
  std::string out = "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 " + shown(width) +
                    " " + shown(height) + "\" width=\"100%\" style=\"max-width:" + shown(width) +
                    "px\">\n<title>" + report.name + "</title>\n" + picture_style() +
                    "<rect width=\"100%\" height=\"100%\" class=\"paper\"/>\n";
  out += header(report, lines);
  for (std::size_t t = 0; t < panels.count; ++t) out += panel(report, layout, panels, t);
  if (cut) {
    out += text(kMargin, height - 16, "facts",
                "and " + std::to_string(report.rounds.size() - panels.count) + " more rounds");
  }
  return out + "</svg>\n";
}

}  // namespace gossamer
