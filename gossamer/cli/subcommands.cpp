#include "gossamer/cli/subcommands.h"

#include <string>
#include <vector>

#include "gossamer/base/errors.h"

namespace gossamer {

const Command& find_command(std::string_view place, std::string_view word,
                            std::span<const Command> commands) {
  std::vector<std::string_view> names;
  for (const Command& command : commands) {
    if (command.name == word) return command;
    names.push_back(command.name);
  }
  fail_unknown_name(place, "command", word, names);
}

int run_group(const CommandGroup& group, int argc, char** argv) {
  const std::string_view word = argc > 1 ? argv[1] : "--help";
  if (word != "--help" && word != "-h" && word != "help") {
    return find_command(group.place, word, group.commands).run(argc - 1, argv + 1);
  }
  constexpr std::string_view kProgram = "gossamer ";
  CommandPage page{.name = std::string(group.place.substr(kProgram.size())),
                   .about = std::string(group.about),
                   .footer = "try: " + std::string(group.example)};
  for (const Command& command : group.commands) {
    page.commands.emplace_back(command.name, command.summary);
  }
  throw HelpAsked{page};
}

}  // namespace gossamer
