#pragma once
/// Commands that are tables of commands: `gossamer` itself, `gossamer lab`, `gossamer theory`.

#include <span>
#include <string_view>

#include "gossamer/cli/commands.h"

namespace gossamer {

/// The named one; throws std::invalid_argument that lists the valid names. `place` is the command
/// as typed.
const Command& find_command(std::string_view place, std::string_view word,
                            std::span<const Command> commands);

struct CommandGroup {
  std::string_view place;    ///< as typed: "gossamer lab"
  std::string_view about;    ///< a sentence
  std::string_view example;  ///< a command to try
  std::span<const Command> commands;
};

/// Runs the command that argv[1] names; throws HelpAsked with the page where none is.
int run_group(const CommandGroup& group, int argc, char** argv);

}  // namespace gossamer
