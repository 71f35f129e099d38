#include "gossamer/cli/subcommands.h"

#include <cstdio>
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

void print_commands(std::span<const Command> commands) {
  for (const Command& command : commands) {
    std::printf("  %-10s %s\n", command.name.data(), command.summary.data());
  }
}

int run_group(const CommandGroup& group, int argc, char** argv) {
  const std::string_view word = argc > 1 ? argv[1] : "--help";
  if (word != "--help" && word != "-h" && word != "help") {
    return find_command(group.place, word, group.commands).run(argc - 1, argv + 1);
  }
  std::printf("%s\n\nusage: %s COMMAND [OPTIONS]\n\ncommands:\n", group.about.data(),
              group.place.data());
  print_commands(group.commands);
  std::printf("\ntry: %s\n", group.example.data());
  return 0;
}

}  // namespace gossamer
