#pragma once
/// A command's page as a value: what its help, the man page and the completion are made of.

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace CLI {
class App;
}

namespace gossamer {

struct FlagPage {
  std::vector<std::string> names;  ///< "--hosts"; of an argument without a flag its name alone
  std::string value;               ///< a word for what follows; empty: nothing does
  std::string help;
  std::string fallback;                   ///< its default; empty: none, or said by `help`
  std::string group;                      ///< heading of the help; empty: "options"
  std::vector<std::string> choices = {};  ///< all that `value` may be; empty: anything
  bool is_positional = false;
};

struct CommandPage {
  std::string name;  ///< after `gossamer`: "lab run"
  std::string about;
  std::string footer;
  std::string arguments;  ///< after the name in the line of usage; empty: from `flags`
  std::vector<FlagPage> flags;
  /// Of a command that has commands of its own: their names and what they do.
  std::vector<std::pair<std::string, std::string>> commands = {};
};

/// Thrown where --help is asked for: who runs the commands catches it, and prints the page or puts
/// it beside others.
struct HelpAsked {
  CommandPage page;
};

/// The page of what CLI11 parses.
CommandPage page_of(const CLI::App& app, std::string_view name);

/// "--hosts N".
std::string name_of(const FlagPage& flag);

/// What it is, with its choices and its default.
std::string text_of(const FlagPage& flag);

/// Columns for a text on stdout: COLUMNS, else the terminal's, else 80; from 60 to 120.
int text_columns();

/// Paragraphs with lines of at most `columns` characters. Indented lines stay as they are.
std::string wrapped(std::string_view text, int columns);

/// "  name   what it is", with what it is wrapped beside a name of up to `width` characters.
std::string wrapped_row(const std::string& name, const std::string& text, int width, int columns);

/// What `gossamer COMMAND --help` prints.
std::string help_text(const CommandPage& page, int columns);

}  // namespace gossamer
