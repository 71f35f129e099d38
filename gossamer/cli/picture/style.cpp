#include "gossamer/cli/picture/style.h"

#include <iterator>

namespace gossamer {
namespace {

struct Shades {
  const char* light;
  const char* dark;
};

constexpr Shades kShades[] = {
    {"#64748b", "#94a3b8"}, {"#2563eb", "#60a5fa"}, {"#ea580c", "#fb923c"}, {"#059669", "#34d399"},
    {"#9333ea", "#c084fc"}, {"#db2777", "#f472b6"}, {"#0891b2", "#22d3ee"}, {"#ca8a04", "#facc15"},
    {"#dc2626", "#f87171"}, {"#475569", "#94a3b8"}, {"#94a3b8", "#7c8aa0"}};

constexpr const char* kShapes = R"(<style>
text { font-family: Inter, "Helvetica Neue", Helvetica, Arial, "DejaVu Sans", sans-serif; fill: #1e293b; }
.title { font-size: 22px; font-weight: 700; }
.facts { font-size: 13px; fill: #64748b; }
.head { font-size: 13px; font-weight: 600; }
.foot { font-size: 11.5px; fill: #64748b; }
.rank { font-size: 10.5px; font-weight: 600; text-anchor: middle; }
.host { font-size: 9.5px; fill: #64748b; text-anchor: middle; }
.tick { font-size: 9.5px; fill: #64748b; text-anchor: middle; }
.left { text-anchor: end; }
.joined { fill: #ffffff; }
.paper { fill: #f8fafc; }
.panel { fill: #ffffff; stroke: #e2e8f0; }
.cover { fill: #ffffff; }
.box { fill: #f1f5f9; stroke: #cbd5e1; }
.border { stroke: #cbd5e1; stroke-width: 0.6; }
)";

constexpr const char* kDarkShapes = R"(@media (prefers-color-scheme: dark) {
text { fill: #e2e8f0; }
.facts, .foot, .host, .tick { fill: #94a3b8; }
.joined { fill: #0f172a; }
.paper { fill: #0f172a; }
.panel { fill: #182235; stroke: #334155; }
.cover { fill: #182235; }
.box { fill: #223047; stroke: #475569; }
.border { stroke: #475569; }
)";

std::string rule(std::size_t colour, const char* shade) {
  const std::string number = std::to_string(colour);
  return ".f" + number + " { fill: " + shade + "; } .s" + number + " { stroke: " + shade + "; }\n";
}

}  // namespace

std::string filled(int colour) { return " class=\"f" + std::to_string(colour) + "\""; }

std::string stroked(int colour) { return " class=\"s" + std::to_string(colour) + "\""; }

std::string picture_style() {
  std::string out = kShapes;
  for (std::size_t c = 0; c < std::size(kShades); ++c) out += rule(c, kShades[c].light);
  out += kDarkShapes;
  for (std::size_t c = 0; c < std::size(kShades); ++c) out += rule(c, kShades[c].dark);
  return out + "}\n</style>\n";
}

}  // namespace gossamer
