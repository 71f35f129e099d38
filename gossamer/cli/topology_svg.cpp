#include <algorithm>
#include <cmath>
#include <vector>

#include "gossamer/cli/options.h"
#include "gossamer/cli/picture_layout.h"
#include "gossamer/cli/picture_round.h"
#include "gossamer/cli/topology_report.h"

namespace gossamer {
namespace {

constexpr std::size_t kMostPanels = 24;
constexpr double kMargin = 32;
constexpr double kGap = 20;
constexpr double kFactsLine = 17;
constexpr double kPanelHead = 34;
constexpr double kPanelFoot = 34;

constexpr const char* kStyle = R"(<style>
text { font-family: Inter, "Helvetica Neue", Helvetica, Arial, "DejaVu Sans", sans-serif; fill: #1e293b; }
.title { font-size: 22px; font-weight: 700; }
.facts { font-size: 13px; fill: #64748b; }
.head { font-size: 13px; font-weight: 600; }
.foot { font-size: 11.5px; fill: #64748b; }
.rank { font-size: 10.5px; font-weight: 600; text-anchor: middle; }
.host { font-size: 9.5px; fill: #94a3b8; text-anchor: middle; }
</style>
)";

std::string text(double x, double y, const char* style, const std::string& words) {
  return "<text x=\"" + shown(x) + "\" y=\"" + shown(y) + "\" class=\"" + style + "\">" + words +
         "</text>\n";
}

/// How the panels are arranged: as many columns as keep the picture wider than high.
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
  if (panels.count <= 4) {
    panels.columns = panels.count;
  } else {
    const double best = std::ceil(std::sqrt(1.7 * static_cast<double>(panels.count)));
    panels.columns = std::min<std::size_t>(static_cast<std::size_t>(best), 6);
    // 6 rounds: 3 + 3 rather than 4 + 2.
    const std::size_t rows = (panels.count + panels.columns - 1) / panels.columns;
    panels.columns = (panels.count + rows - 1) / rows;
  }
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

std::string panel(const TopologyReport& report, const PictureLayout& layout, const Panels& panels,
                  std::size_t t) {
  const double x = kMargin + static_cast<double>(t % panels.columns) * panels.step_x();
  const double y = panels.top + static_cast<double>(t / panels.columns) * panels.step_y();
  const double scale = panels.side / (2 * layout.extent + 12);
  const double middle = y + kPanelHead + panels.side / 2;
  std::string out = "<rect x=\"" + shown(x) + "\" y=\"" + shown(y) + "\" width=\"" +
                    shown(panels.side) + "\" height=\"" +
                    shown(panels.side + kPanelHead + kPanelFoot) +
                    "\" rx=\"12\" fill=\"#ffffff\" stroke=\"#e2e8f0\"/>\n";
  out += text(x + 14, y + 23, "head",
              panels.count == 1 ? "every round" : "round " + std::to_string(t));
  out += "<g transform=\"translate(" + shown(x + panels.side / 2) + " " + shown(middle) +
         ") scale(" + shown(std::min(scale, 1.7)) + ")\">\n";
  out += draw_round(report.rounds[t], report.schedule.shape, layout) + "</g>\n";
  return out + text(x + 14, y + kPanelHead + panels.side + 20, "foot",
                    describe_weights(report.rounds[t]));
}

}  // namespace

std::string to_svg(const TopologyReport& report) {
  const PictureLayout layout = lay_out(report.schedule.shape);
  Panels panels = arrange(report.rounds.size(), layout.extent);
  const double width = panels.width();
  const std::vector<std::string> lines = lines_of(facts(report), width - 2 * kMargin);
  panels.top = 75 + kFactsLine * static_cast<double>(lines.size());
  const bool cut = report.rounds.size() > panels.count;
  const double height = panels.height() + (cut ? 18 : 0);
  const std::string size = shown(width) + "\" height=\"" + shown(height);
  std::string out = "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"" + size +
                    "\" viewBox=\"0 0 " + shown(width) + " " + shown(height) + "\">\n" + "<title>" +
                    report.name + "</title>\n" + kStyle +
                    "<rect width=\"100%\" height=\"100%\" fill=\"#f8fafc\"/>\n";
  out += header(report, lines);
  for (std::size_t t = 0; t < panels.count; ++t) out += panel(report, layout, panels, t);
  if (cut) {
    out += text(kMargin, height - 16, "facts",
                "and " + std::to_string(report.rounds.size() - panels.count) + " more rounds");
  }
  return out + "</svg>\n";
}

}  // namespace gossamer
