#include "gossamer/lab/chart_style.h"

#include <array>

namespace gossamer::drawing {
namespace {

constexpr const char* kStyle = R"(<style>
.chart text { font-family: Inter, "Helvetica Neue", Helvetica, Arial, "DejaVu Sans", sans-serif; fill: #1e293b; }
.chart .heading { font-size: 22px; font-weight: 700; }
.chart .title { font-size: 15px; font-weight: 600; }
.chart .caption { font-size: 12px; fill: #64748b; }
.chart .label { font-size: 12.5px; fill: #334155; text-anchor: middle; }
.chart .name { font-size: 12px; }
.chart .tick { font-size: 11.5px; fill: #526077; }
.chart .x { text-anchor: middle; }
.chart .y { text-anchor: end; }
.chart .none { font-size: 14px; fill: #64748b; text-anchor: middle; }
@media (prefers-color-scheme: dark) {
.chart text { fill: #e2e8f0; }
.chart .caption, .chart .label, .chart .tick, .chart .none { fill: #a3b1c6; }
)";

/// What a colour is in the dark; marks keep the light one as their attribute, which programs that
/// know no style sheets can read.
constexpr std::array<std::array<const char*, 2>, 11> kDark{{{"#1453a0", "#6aa9f5"},
                                                            {"#d5561a", "#ff9158"},
                                                            {"#1fa67f", "#3fd0a5"},
                                                            {"#93447a", "#dd8ec4"},
                                                            {"#1e293b", "#e2e8f0"},
                                                            {"#e0a316", "#f2c14e"},
                                                            {"#ffffff", "#182235"},
                                                            {"#f8fafc", "#0f172a"},
                                                            {"#e2e8f0", "#334155"},
                                                            {"#e8edf3", "#2a3648"},
                                                            {"#94a3b8", "#64748b"}}};

}  // namespace

std::string style_sheet() {
  std::string out = kStyle;
  for (const auto& [light, dark] : kDark) {
    for (const std::string part : {"fill", "stroke"}) {
      out += ".chart [" + part + "=\"" + light + "\"] { " + part + ": " + dark + "; }\n";
    }
  }
  return out + "}\n</style>\n";
}

}  // namespace gossamer::drawing
