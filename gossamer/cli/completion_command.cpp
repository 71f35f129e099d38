#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

#include "gossamer/algo/choices.h"
#include "gossamer/algo/pattern.h"
#include "gossamer/base/codec.h"
#include "gossamer/base/errors.h"
#include "gossamer/cli/command_line.h"
#include "gossamer/cli/commands.h"
#include "gossamer/cli/train_help.h"
#include "gossamer/graph/topology.h"

namespace gossamer {
namespace completion_command {

constexpr const char* kFooter = R"(examples:
  source <(gossamer completion bash)              (in ~/.bashrc)
  source <(gossamer completion zsh)               (in ~/.zshrc, after compinit)
  gossamer completion fish > ~/.config/fish/completions/gossamer.fish)";

/// Words in a row, with a space between them.
template <class Range, class Name>
std::string joined(const Range& range, const Name& name_of_one) {
  std::string text;
  for (const auto& each : range) {
    text += (text.empty() ? "" : " ") + std::string(name_of_one(each));
  }
  return text;
}

std::string topology_words() {
  return joined(topologies(), [](const Topology& topology) {
    const std::string name(topology.name);
    return topology.alias.empty() ? name : name + " " + std::string(topology.alias);
  });
}

/// What may follow a flag, or stand for an argument; empty: files.
std::string words_for(const CommandPage& page, const FlagPage& flag) {
  const std::string& name = flag.names.back();
  if (!flag.choices.empty()) return joined(flag.choices, [](const auto& each) { return each; });
  if (name == "--topology" || (page.name == "topology" && flag.is_positional)) {
    return topology_words();
  }
  if (page.name == "simulate" && flag.is_positional) return "ddp allreduce " + topology_words();
  if (name == "--pattern") return joined(patterns(), [](const auto& each) { return each.name; });
  if (name == "--optimizer") {
    return joined(optimizer_choices(), [](const auto& each) { return each; });
  }
  if (name == "--codec") return joined(kCodecs, [](const auto& each) { return each.name; });
  if (name == "--transport") return joined(kTransports, [](const auto& each) { return each; });
  return "";
}

std::string flag_words(const CommandPage& page) {
  std::string text;
  for (const FlagPage& flag : page.flags) {
    if (flag.is_positional) {
      text += words_for(page, flag) + " ";
      continue;
    }
    for (const std::string& name : flag.names) text += name + " ";
  }
  if (page.name.empty()) text += "help ";
  for (const auto& [name, summary] : page.commands) text += name + " ";
  return text;
}

/// Cases of values after a flag; the first command that has the flag speaks for all.
std::string value_cases(const std::vector<CommandPage>& pages) {
  std::vector<std::string> seen;
  std::string text;
  for (const CommandPage& page : pages) {
    for (const FlagPage& flag : page.flags) {
      if (flag.is_positional || flag.value.empty()) continue;
      const std::string& name = flag.names.back();
      if (std::ranges::find(seen, name) != seen.end()) continue;
      seen.push_back(name);
      const std::string words = words_for(page, flag);
      text += "    " + name + ") " +
              (words.empty() ? "COMPREPLY=(); return" : "words=\"" + words + "\"") + " ;;\n";
    }
  }
  return text;
}

std::string bash_script(const std::vector<CommandPage>& pages) {
  std::string text = R"(_gossamer() {
  local word="${COMP_WORDS[COMP_CWORD]}" before="${COMP_WORDS[COMP_CWORD-1]}" words=""
  local command="${COMP_WORDS[1]}"
  [ "$COMP_CWORD" -gt 2 ] && [ "$command" = lab ] && command="lab ${COMP_WORDS[2]}"
  [ "$COMP_CWORD" -eq 1 ] && command=""
  case "$before" in
)" + value_cases(pages) +
                     R"(    *) case "$command" in
)";
  for (const CommandPage& page : pages) {
    const std::string name = page.name.empty() ? "\"\" | help" : "\"" + page.name + "\"";
    text += "      " + name + ") words=\"" + flag_words(page) + "\" ;;\n";
  }
  return text + R"(    esac ;;
  esac
  COMPREPLY=($(compgen -W "$words" -- "$word"))
}
complete -o default -F _gossamer gossamer
)";
}

/// zsh runs the script of bash.
std::string zsh_script(const std::vector<CommandPage>& pages) {
  return "autoload -U +X bashcompinit && bashcompinit\n" + bash_script(pages);
}

std::string in_quotes(const std::string& text) {
  std::string result = "'";
  for (const char letter : text) {
    if (letter == '\'' || letter == '\\') result += '\\';
    result += letter;
  }
  return result + "'";
}

std::string fish_script(const std::vector<CommandPage>& pages) {
  std::string text;
  for (const CommandPage& page : pages) {
    const auto space = page.name.find(' ');
    std::string when = "__fish_use_subcommand";
    if (!page.name.empty()) when = "__fish_seen_subcommand_from " + page.name.substr(0, space);
    if (space != page.name.npos) {
      when += "; and __fish_seen_subcommand_from " + page.name.substr(space + 1);
    }
    const std::string start = "complete -c gossamer -n " + in_quotes(when);
    for (const auto& [name, summary] : page.commands) {
      text += start + " -f -a " + name + " -d " + in_quotes(summary) + "\n";
    }
    for (const FlagPage& flag : page.flags) {
      const std::string words = words_for(page, flag);
      if (flag.is_positional) {
        if (!words.empty()) text += start + " -f -a " + in_quotes(words) + "\n";
        continue;
      }
      for (const std::string& name : flag.names) {
        const bool is_long = name.starts_with("--");
        text += start + (is_long ? " -l " + name.substr(2) : " -s " + name.substr(1)) +
                (flag.value.empty() ? "" : " -r") +
                (words.empty() ? "" : " -f -a " + in_quotes(words)) + " -d " +
                in_quotes(flag.help) + "\n";
      }
    }
  }
  return text;
}

struct Shell {
  std::string_view name;
  std::string (*script)(const std::vector<CommandPage>& pages);
};

constexpr Shell kShells[] = {{"bash", bash_script}, {"zsh", zsh_script}, {"fish", fish_script}};

}  // namespace completion_command

int run_completion(int argc, char** argv) {
  using namespace completion_command;
  std::string name = "bash";
  CLI::App app("Prints a script that completes commands, flags and their values.");
  app.add_option("shell", name, "bash, zsh or fish")->capture_default_str();
  app.footer(kFooter);
  parse_command_line(app, "completion", argc, argv);
  std::vector<std::string_view> names;
  for (const Shell& shell : kShells) {
    names.push_back(shell.name);
    if (shell.name != name) continue;
    std::fputs(shell.script(all_pages()).c_str(), stdout);
    return 0;
  }
  fail_unknown_name("completion", "shell", name, names);
}

}  // namespace gossamer
