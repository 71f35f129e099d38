#pragma once
/// Parsing a subcommand's line, in the same way for all of them.

#include <CLI/CLI.hpp>
#include <optional>
#include <string>

namespace gossamer {

/// Takes a whole number from 1 up.
extern const CLI::Validator kFromOneUp;

/// Parses; an exit code where that is all there is to do: after --help, which it prints, and after
/// a complaint. `name` is the subcommand's. Throws std::invalid_argument for what is left over,
/// with the nearest flag.
std::optional<int> parse_command_line(CLI::App& app, const std::string& name, int argc,
                                      char** argv);

/// Writes the whole file; throws IoError. `place` opens its message, `what` is what could not be
/// written.
void write_text_file(const std::string& place, const std::string& what, const std::string& path,
                     const std::string& text);

}  // namespace gossamer
