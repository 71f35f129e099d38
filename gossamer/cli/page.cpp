#include "gossamer/cli/page.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <sstream>

#include "gossamer/cli/text_table.h"

namespace gossamer {
namespace {

constexpr int kLeastColumns = 60;
constexpr int kMostColumns = 120;
constexpr int kUsualColumns = 80;
constexpr int kWidestName = 28;

std::vector<std::string> lines_of(std::string_view text) {
  std::vector<std::string> lines;
  std::istringstream in{std::string(text)};
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

/// The words of a text in lines.
std::vector<std::string> filled_text(std::string_view text, int columns) {
  std::vector<std::string> lines(1);
  std::istringstream in{std::string(text)};
  for (std::string word; in >> word;) {
    std::string& line = lines.back();
    if (line.empty()) {
      line = word;
    } else if (width_of(line) + 1 + width_of(word) <= columns) {
      line += " " + word;
    } else {
      lines.push_back(word);
    }
  }
  return lines;
}

std::string usage_of(const CommandPage& page) {
  std::string text = "usage: gossamer" + (page.name.empty() ? "" : " " + page.name);
  if (!page.arguments.empty()) return text + " " + page.arguments;
  if (!page.commands.empty()) return text + " COMMAND [OPTIONS]";
  for (const FlagPage& flag : page.flags) {
    if (flag.is_positional) text += " [" + flag.names.front() + "]";
  }
  return text + " [OPTIONS]";
}

std::string heading_of(const FlagPage& flag) {
  if (flag.is_positional) return "arguments";
  return flag.group.empty() ? "options" : flag.group;
}

}  // namespace

std::string name_of(const FlagPage& flag) {
  std::string text;
  for (const std::string& name : flag.names) text += (text.empty() ? "" : ", ") + name;
  return flag.value.empty() ? text : text + " " + flag.value;
}

std::string text_of(const FlagPage& flag) {
  std::string text = flag.help;
  for (const std::string& choice : flag.choices) {
    text += (choice == flag.choices.front() ? ": " : ", ") + choice;
  }
  const bool is_said = flag.fallback.empty() || flag.help.find("default") != flag.help.npos;
  return is_said ? text : text + " (default " + flag.fallback + ")";
}

int text_columns() {
  const char* asked = std::getenv("COLUMNS");
  int columns = asked == nullptr ? 0 : std::atoi(asked);
  winsize size{};
  if (columns <= 0 && ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0) columns = size.ws_col;
  return std::clamp(columns <= 0 ? kUsualColumns : columns, kLeastColumns, kMostColumns);
}

std::string wrapped(std::string_view text, int columns) {
  std::string result;
  std::string paragraph;
  const auto finish = [&] {
    if (paragraph.empty()) return;
    for (const std::string& line : filled_text(paragraph, columns)) result += line + "\n";
    paragraph.clear();
  };
  for (const std::string& line : lines_of(text)) {
    const bool stays = line.empty() || line.front() == ' ';
    if (!stays) {
      paragraph += line + " ";
      continue;
    }
    finish();
    result += line + "\n";
  }
  finish();
  return result;
}

std::string wrapped_row(const std::string& name, const std::string& text, int width, int columns) {
  const int own = width_of(name);
  int pad = own <= width ? width - own + 2 : 0;  // 0: the text begins in a line of its own
  std::string result = "  " + name;
  for (const std::string& line : filled_text(text, columns - width - 4)) {
    if (pad == 0) {
      result += "\n";
      pad = width + 4;
    }
    result += std::string(static_cast<std::size_t>(pad), ' ') + line;
    pad = 0;
  }
  return result + "\n";
}

std::string help_text(const CommandPage& page, int columns) {
  std::string text = wrapped(page.about, columns) + "\n" + usage_of(page) + "\n";
  if (!page.commands.empty()) text += "\ncommands:\n";
  for (const auto& [name, summary] : page.commands) {
    text += wrapped_row(name, summary, 10, columns);
  }
  int width = 0;
  for (const FlagPage& flag : page.flags) {
    const int own = width_of(name_of(flag));
    if (own <= kWidestName) width = std::max(width, own);
  }
  std::vector<std::string> headings;
  for (const FlagPage& flag : page.flags) {
    const std::string heading = heading_of(flag);
    if (std::ranges::find(headings, heading) == headings.end()) headings.push_back(heading);
  }
  for (const std::string& heading : headings) {
    text += "\n" + heading + ":\n";
    for (const FlagPage& flag : page.flags) {
      if (heading_of(flag) == heading) {
        text += wrapped_row(name_of(flag), text_of(flag), width, columns);
      }
    }
  }
  if (!page.footer.empty()) text += "\n" + wrapped(page.footer, columns);
  return text;
}

}  // namespace gossamer
