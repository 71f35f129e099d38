#pragma once
/// For tests of pictures: reads back what was drawn, and says whether it is XML.

#include <algorithm>
#include <cctype>
#include <cstdio>
#include <sstream>
#include <string>
#include <vector>

namespace gossamer::chart_case {

inline bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

/// A name, then words that end in ="", then perhaps a slash.
inline bool is_tag(const std::string& text) {
  std::istringstream words(text);
  std::string word;
  words >> word;
  if (word.ends_with('/')) word.pop_back();
  const bool is_name =
      !word.empty() && is_letter(word[0]) && text[0] == word[0] &&
      std::ranges::all_of(word, [](char c) { return is_letter(c) || std::isdigit(c); });
  if (!is_name) return false;
  while (words >> word) {
    if (word == "/") return words.peek() == EOF;
    if (word.ends_with('/')) word.pop_back();
    const bool is_attribute = word.size() > 3 && word.ends_with("=\"\"");
    if (!is_attribute) return false;
    const std::string name = word.substr(0, word.size() - 3);
    if (!std::ranges::all_of(name, [](char c) { return is_letter(c) || c == ':' || c == '-'; })) {
      return false;
    }
  }
  return true;
}

/// One tag without its brackets: "a x="1"", "/a", "a/". Empty where it is well-formed.
inline std::string tag_error(const std::string& tag) {
  std::string rest;  // without the values of its attributes
  bool inside = false;
  for (char letter : tag) {
    if (letter == '"') inside = !inside;
    if (!inside || letter == '"') rest += letter;
    if (inside && letter == '<') return "< in an attribute of " + tag.substr(0, 60);
  }
  const std::string body = rest.starts_with('/') ? rest.substr(1) : rest;
  return is_tag(body) ? "" : "a bad tag: " + rest.substr(0, 100);
}

/// Whether every & begins one of the entities that XML knows.
inline bool entities_are_known(const std::string& text) {
  for (std::size_t at = text.find('&'); at != std::string::npos; at = text.find('&', at + 1)) {
    const std::string name = text.substr(at + 1, text.find(';', at) - at - 1);
    const bool known =
        name == "amp" || name == "lt" || name == "gt" || name == "quot" || name == "apos";
    if (!known) return false;
  }
  return true;
}

/// Empty for well-formed XML, else what is wrong. Knows elements, attributes in double quotes, the
/// five entities and HTML's document type.
inline std::string xml_error(const std::string& text) {
  if (!entities_are_known(text)) return "an unknown entity";
  for (char letter : text) {
    if (static_cast<unsigned char>(letter) < 0x20 && letter != '\n') return "a control character";
  }
  const std::string type = "<!DOCTYPE html>";
  std::vector<std::string> open;
  int roots = 0;
  std::size_t at = text.starts_with(type) ? type.size() : 0;
  while ((at = text.find('<', at)) != std::string::npos) {
    const std::size_t end = text.find('>', at);
    if (end == std::string::npos) return "an open tag";
    const std::string tag = text.substr(at + 1, end - at - 1);
    const std::string wrong = tag_error(tag);
    if (!wrong.empty()) return wrong;
    if (tag.starts_with('/')) {
      if (open.empty() || open.back() != tag.substr(1)) return "closes " + tag;
      open.pop_back();
    } else {
      if (open.empty()) ++roots;
      if (!tag.ends_with('/')) open.push_back(tag.substr(0, tag.find_first_of(" \n")));
    }
    at = end + 1;
  }
  if (!open.empty()) return "left open: " + open.back();
  return roots == 1 ? "" : std::to_string(roots) + " roots";
}

struct Dot {
  double x = 0;
  double y = 0;
};

/// What stands between the two texts, each time that the first is followed by the second.
inline std::vector<std::string> all(const std::string& text, const std::string& before,
                                    const std::string& after) {
  std::vector<std::string> found;
  for (std::size_t at = text.find(before); at != std::string::npos;
       at = text.find(before, at + 1)) {
    const std::size_t begin = at + before.size();
    const std::size_t end = text.find(after, begin);
    if (end != std::string::npos) found.push_back(text.substr(begin, end - begin));
  }
  return found;
}

inline std::size_t count(const std::string& text, const std::string& part) {
  std::size_t found = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) {
    ++found;
  }
  return found;
}

/// The data of all paths whose tag has the words, in their order.
inline std::vector<std::string> paths(const std::string& svg, const std::string& words) {
  std::vector<std::string> found;
  for (std::size_t at = svg.find("<path d=\""); at != std::string::npos;
       at = svg.find("<path d=\"", at + 1)) {
    const std::size_t begin = at + 9;
    const std::size_t end = svg.find('"', begin);
    const std::string style = svg.substr(end, svg.find('>', end) - end);
    if (style.find(words) != std::string::npos) found.push_back(svg.substr(begin, end - begin));
  }
  return found;
}

/// The points of a path of absolute M and L; relative commands between them are skipped.
inline std::vector<Dot> dots(const std::string& path) {
  std::vector<Dot> found;
  for (std::size_t k = 0; k < path.size(); ++k) {
    if (path[k] != 'M' && path[k] != 'L') continue;
    Dot dot;
    std::istringstream(path.substr(k + 1, 40)) >> dot.x >> dot.y;
    found.push_back(dot);
  }
  return found;
}

/// Exponents with ^ before them instead of their tags.
inline std::string plain_exponents(std::string svg) {
  const std::string end = "</tspan>";
  for (std::size_t at; (at = svg.find("<tspan")) != std::string::npos;) {
    svg.replace(at, svg.find('>', at) + 1 - at, "^");
    svg.erase(svg.find(end, at), end.size());
  }
  return svg;
}

/// Where the tick with that label ("10^3", "0.5") stands along its axis ("x" or "y").
inline double tick_at(std::string svg, const std::string& axis, const std::string& label) {
  svg = plain_exponents(std::move(svg));
  const std::string rest = "\" class=\"tick " + axis + "\">" + label + "</text>";
  const std::size_t end = svg.find(rest);
  if (end == std::string::npos) return -1;
  const std::string place = svg.substr(svg.rfind("<text x=\"", end), end);
  double x = 0;
  double y = 0;
  std::istringstream(place.substr(9)) >> x;
  std::istringstream(place.substr(place.find(" y=\"") + 4)) >> y;
  return axis == "x" ? x : y - 4;  // below the middle
}

}  // namespace gossamer::chart_case
