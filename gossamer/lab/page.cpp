#include <algorithm>
#include <cctype>
#include <cstddef>
#include <set>

#include "gossamer/lab/chart.h"
#include "gossamer/lab/chart_text.h"

namespace gossamer {
namespace {

using drawing::escaped;

constexpr std::size_t kChartWidth = 660;  // with the gap beside it

constexpr const char* kPageStyle = R"(<style>
:root { color-scheme: light dark; --paper: #f8fafc; --panel: #ffffff; --head: #f1f5f9;
  --ink: #1e293b; --edge: #e2e8f0; --link: #1453a0; }
@media (prefers-color-scheme: dark) {
  :root { --paper: #0f172a; --panel: #182235; --head: #223047; --ink: #e2e8f0; --edge: #334155;
    --link: #6aa9f5; }
}
body { margin: 0; background: var(--paper); color: var(--ink); line-height: 1.55;
  font-family: Inter, "Helvetica Neue", Helvetica, Arial, "DejaVu Sans", sans-serif; }
main { max-width: 1348px; margin: 0 auto; padding: 40px clamp(12px, 3vw, 24px) 64px; }
h1 { font-size: 28px; line-height: 1.25; margin: 0 0 20px; }
h2 { font-size: 20px; line-height: 1.3; margin: 0 0 8px; }
p { max-width: 76ch; margin: 0 0 12px; }
a { color: var(--link); }
nav { background: var(--panel); border: 1px solid var(--edge); border-radius: 12px; padding: 14px 20px;
  margin-bottom: 40px; max-width: 76ch; box-sizing: border-box; }
nav ol { margin: 0; padding-left: 22px; }
section { margin: 0 0 56px; scroll-margin-top: 16px; }
.drawing { display: grid; gap: 20px; margin-top: 16px; align-items: start;
  grid-template-columns: repeat(auto-fit, minmax(min(100%, 20rem), 1fr)); }
.drawing svg { display: block; height: auto; }
.rows { overflow-x: auto; margin-top: 16px; }
table { border-collapse: collapse; background: var(--panel); font-size: 14px; }
th, td { padding: 6px 14px; border: 1px solid var(--edge); text-align: left; }
th { background: var(--head); font-weight: 600; }
.number { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
@media print { section { break-inside: avoid; } nav { display: none; } }
</style>
)";

/// Letters, digits, "-" and "_" of the name; another one where that is empty or taken.
std::string anchor_of(const Figure& figure, std::size_t place, std::set<std::string>& taken) {
  std::string anchor = figure.name;
  for (char& letter : anchor) {
    const bool plain = std::isalnum(static_cast<unsigned char>(letter)) != 0 || letter == '_';
    if (!plain) letter = '-';
  }
  const std::string number = std::to_string(place + 1);
  if (anchor.empty()) anchor = "figure-" + number;
  while (!taken.insert(anchor).second) anchor += "-" + number;
  return anchor;
}

const std::string& heading_of(const Figure& figure) {
  return figure.title.empty() ? figure.name : figure.title;
}

std::string paragraphs(const std::string& text) {
  std::string out;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find("\n\n", begin), text.size());
    if (end > begin) out += "<p>" + escaped(text.substr(begin, end - begin)) + "</p>\n";
    begin = end == text.size() ? end : end + 2;
  }
  return out;
}

bool is_number(const std::string& cell) {
  return cell.find_first_of("0123456789") < 4 && cell.find_first_of("-+.0123456789\xE2") == 0;
}

/// Whether the column holds numbers, but for empty cells.
bool has_numbers(const Figure& figure, std::size_t column) {
  bool any = false;
  for (const std::vector<std::string>& row : figure.rows) {
    if (column >= row.size() || row[column].empty()) continue;
    if (!is_number(row[column])) return false;
    any = true;
  }
  return any;
}

std::string table_row(const std::vector<std::string>& cells, const std::string& element,
                      const std::vector<bool>& numbers) {
  std::string out = "<tr>";
  for (std::size_t k = 0; k < numbers.size(); ++k) {
    const std::string cell = k < cells.size() ? escaped(cells[k]) : "";
    out += "<" + element + (numbers[k] ? " class=\"number\"" : "") + ">" + cell;
    out += "</" + element + ">";
  }
  return out + "</tr>\n";
}

std::string table(const Figure& figure) {
  if (figure.header.empty() && figure.rows.empty()) return "";
  std::size_t columns = figure.header.size();
  for (const std::vector<std::string>& row : figure.rows) columns = std::max(columns, row.size());
  std::vector<bool> numbers;
  for (std::size_t k = 0; k < columns; ++k) numbers.push_back(has_numbers(figure, k));
  std::string out = "<div class=\"rows\"><table>\n";
  if (!figure.header.empty()) {
    out += "<thead>" + table_row(figure.header, "th", numbers) + "</thead>\n";
  }
  out += "<tbody>\n";
  for (const std::vector<std::string>& row : figure.rows) out += table_row(row, "td", numbers);
  return out + "</tbody></table></div>\n";
}

std::string section(const Figure& figure, const std::string& anchor) {
  std::string out = "<section id=\"" + anchor + "\">\n<h2>" + escaped(heading_of(figure)) +
                    "</h2>\n" + paragraphs(figure.text);
  if (!figure.charts.empty()) {
    const std::size_t columns =
        std::min(figure.charts.size(), static_cast<std::size_t>(std::max(figure.columns, 1)));
    out += "<div class=\"drawing\" style=\"max-width:" + std::to_string(columns * kChartWidth) +
           "px\">\n";
    for (const std::string& svg : to_svgs(figure.charts)) out += svg;
    out += "</div>\n";
  }
  return out + table(figure) + "</section>\n";
}

}  // namespace

std::string to_html(std::string_view title, std::span<const Figure> figures) {
  const std::string name = escaped(title);
  std::string contents;
  std::string sections;
  std::set<std::string> taken;
  for (std::size_t k = 0; k < figures.size(); ++k) {
    const std::string anchor = anchor_of(figures[k], k, taken);
    contents +=
        "<li><a href=\"#" + anchor + "\">" + escaped(heading_of(figures[k])) + "</a></li>\n";
    sections += section(figures[k], anchor);
  }
  std::string out = "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\"/>\n";
  out += "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n<title>" +
         name + "</title>\n" + kPageStyle + "</head>\n<body>\n<main>\n<h1>" + name + "</h1>\n";
  if (!figures.empty()) {
    out += "<nav aria-label=\"Contents\"><ol>\n" + contents + "</ol></nav>\n";
  }
  return out + sections + "</main>\n</body>\n</html>\n";
}

}  // namespace gossamer
