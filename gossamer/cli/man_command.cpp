#include <CLI/CLI.hpp>
#include <cctype>
#include <cstdio>
#include <sstream>
#include <string>
#include <vector>

#include "gossamer/cli/command_line.h"
#include "gossamer/cli/commands.h"

namespace gossamer {
namespace man_command {

constexpr const char* kFooter = R"(examples:
  gossamer man | man -l -
  gossamer man > ~/.local/share/man/man1/gossamer.1)";

/// Text as roff takes it: dashes to be copied, and no line that is a request.
std::string escaped(std::string_view text) {
  std::string result;
  for (const char letter : text) {
    const bool begins_line = result.empty() || result.back() == '\n';
    if (begins_line && (letter == '.' || letter == '\'')) result += "\\&";
    if (letter == '\\') {
      result += "\\e";
    } else if (letter == '-') {
      result += "\\-";
    } else {
      result += letter;
    }
  }
  return result;
}

/// Paragraphs; indented lines, which are examples, as they are.
std::string paragraphs(const std::string& text) {
  std::string result = ".PP\n";
  bool is_example = false;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) {
    const bool is_indented = line.starts_with("  ");
    if (is_indented != is_example) result += is_indented ? ".PP\n.nf\n" : ".fi\n";
    is_example = is_indented;
    result += line.empty() ? ".PP\n" : escaped(line) + "\n";
  }
  return is_example ? result + ".fi\n" : result;
}

std::string section(const CommandPage& page) {
  std::string text = ".SH " + (page.name.empty() ? "OPTIONS" : "\"gossamer " + page.name + "\"");
  text += "\n" + (page.name.empty() ? "" : paragraphs(page.about));
  for (const FlagPage& flag : page.flags) {
    text += ".TP\n.B " + escaped(name_of(flag)) + "\n" + escaped(text_of(flag)) + "\n";
  }
  for (const auto& [name, summary] : page.commands) {
    text += ".TP\n.B " + escaped(name) + "\n" + escaped(summary) + "\n";
  }
  return page.footer.empty() ? text : text + paragraphs(page.footer);
}

}  // namespace man_command

int run_man(int argc, char** argv) {
  using namespace man_command;
  CLI::App app(
      "Prints the manual page: every command with its flags, from the same tables as their "
      "help.");
  app.footer(kFooter);
  parse_command_line(app, "man", argc, argv);
  const std::vector<CommandPage> pages = all_pages();
  std::string text = ".TH GOSSAMER 1\n.SH NAME\ngossamer \\- " + escaped(pages.front().about) +
                     "\n.SH SYNOPSIS\n.B gossamer\n" + escaped(pages.front().arguments) + "\n";
  for (const CommandPage& page : pages) text += section(page);
  std::fputs(text.c_str(), stdout);
  return 0;
}

}  // namespace gossamer
