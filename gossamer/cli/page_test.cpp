#include "gossamer/cli/page.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>
#include <string>
#include <vector>

#include "gossamer/cli/commands.h"
#include "gossamer/cli/program_run.h"

namespace gossamer {
namespace {

using program_run::Result;
using program_run::run;

TEST(Page, EveryCommandHasOneAndHelpPrintsIt) {
  const std::vector<CommandPage> pages = all_pages();
  for (const Command& command : commands()) {
    const auto is_its = [&](const CommandPage& page) { return page.name == command.name; };
    EXPECT_TRUE(std::ranges::any_of(pages, is_its)) << command.name;
  }
  for (const CommandPage& page : pages) {
    const Result help = run("help " + page.name);
    EXPECT_EQ(help.code, 0) << page.name;
    EXPECT_EQ(help.err, "") << page.name;
    EXPECT_EQ(help.out, help_text(page, 80)) << page.name;
    if (!page.name.empty()) {
      EXPECT_EQ(help.out, run(page.name + " --help").out);
    }
    for (const FlagPage& flag : page.flags) EXPECT_FALSE(flag.help.empty()) << name_of(flag);
  }
}

/// Whether a text has one of these words.
bool says(const std::string& text, const std::vector<std::string>& words) {
  return std::ranges::any_of(words,
                             [&](const std::string& word) { return text.find(word) != text.npos; });
}

TEST(Page, EveryCommandHasAnExample) {
  for (const CommandPage& page : all_pages()) {
    const std::string line = page.name.empty() ? "try: gossamer " : "gossamer " + page.name;
    EXPECT_TRUE(says(page.footer, {line})) << page.name << ": " << page.footer;
  }
}

TEST(Page, EveryOptionSaysItsDefaultOrWhatHappensWithoutIt) {
  int options = 0;
  int switches = 0;
  for (const CommandPage& page : all_pages()) {
    for (const FlagPage& flag : page.flags) {
      const bool is_switch = flag.value.empty() && !flag.is_positional;
      (is_switch ? switches : options) += 1;
      if (is_switch) continue;
      EXPECT_TRUE(says(text_of(flag), {"default", "left out: ", "must be given"}))
          << page.name << " " << name_of(flag) << ": " << text_of(flag);
    }
  }
  EXPECT_GT(options, 300);
  EXPECT_GT(switches, 40);
}

TEST(Page, TimesRatesAndSizesHaveAUnit) {
  const std::vector<std::string> quantities = {"-rate", "latency", "compute",    "timeout",
                                               "grace", "bytes",   "--deviation"};
  const std::vector<std::string> units = {"seconds", "bytes",        "bit/s",    "B/s",  "50us",
                                          "ms",      "(default 0s)", "any unit", "200us"};
  int found = 0;
  for (const CommandPage& page : all_pages()) {
    for (const FlagPage& flag : page.flags) {
      const std::string name = name_of(flag);
      const bool is_word = !flag.choices.empty() || says(name, {"learning"});
      if (is_word || flag.value.empty() || !says(name, quantities)) continue;
      ++found;
      EXPECT_TRUE(says(name + " " + text_of(flag), units)) << page.name << " " << text_of(flag);
    }
  }
  EXPECT_GT(found, 25);
}

TEST(Page, HelpIsAsWideAsTheTerminal) {
  for (const CommandPage& page : all_pages()) {
    for (const int columns : {60, 80, 100}) {
      std::istringstream lines(help_text(page, columns));
      for (std::string line; std::getline(lines, line);) {
        const bool is_example = line.starts_with("  gossamer ") || line.starts_with("  source ") ||
                                line.starts_with("  echo ") || line.starts_with("  torchrun ");
        if (is_example || line.find(' ', line.find_first_not_of(' ')) == line.npos) continue;
        EXPECT_LE(line.size(), static_cast<std::size_t>(columns) + 4) << page.name << ": " << line;
      }
    }
  }
}

TEST(Page, WrapsParagraphsAndKeepsExamples) {
  EXPECT_EQ(wrapped("one two\nthree four\n\nexamples:\n  a    b c d e f g h", 10),
            "one two\nthree four\n\nexamples:\n  a    b c d e f g h\n");
  EXPECT_EQ(wrapped_row("--a", "one two three", 5, 16), "  --a    one two\n         three\n");
  EXPECT_EQ(wrapped_row("--longer", "one", 5, 16), "  --longer\n         one\n");
}

TEST(Page, VersionHasAShortFlag) { EXPECT_EQ(run("-V").out, run("--version").out); }

TEST(Completion, OffersCommandsFlagsAndValues) {
  const auto offered = [](const std::string& words, const std::string& at) {
    return run("completion bash > /dev/null; bash -c 'source <(" GOSSAMER_PROGRAM
               " completion bash); COMP_WORDS=(gossamer " +
               words + "); COMP_CWORD=" + at + "; _gossamer; echo \"${COMPREPLY[@]}\"'")
        .out;
  };
  EXPECT_EQ(offered("to", "1"), "topology\n");
  EXPECT_EQ(offered("help ma", "2"), "man\n");
  EXPECT_EQ(offered("lab fig", "2"), "figure\n");
  EXPECT_EQ(offered("lab run --opt", "3"), "--optimizer\n");
  EXPECT_EQ(offered("train --topology al", "3"), "alternating_exponential_ring\n");
  EXPECT_EQ(offered("train --codec i", "3"), "int8\n");
  EXPECT_EQ(offered("lab run --optimizer n", "4"), "\n");
}

TEST(Completion, EveryShellKnowsEveryFlag) {
  for (const char* shell : {"bash", "zsh", "fish"}) {
    const std::string script = run(std::string("completion ") + shell).out;
    for (const CommandPage& page : all_pages()) {
      for (const FlagPage& flag : page.flags) {
        if (flag.is_positional) continue;
        const std::string name = flag.names.back().substr(2);
        EXPECT_NE(script.find(name), std::string::npos) << shell << ": " << name;
      }
    }
  }
}

TEST(Man, HasEveryCommandAndFlag) {
  const std::string page = run("man").out;
  for (const CommandPage& each : all_pages()) {
    const std::string heading = each.name.empty() ? ".SH OPTIONS" : "gossamer " + each.name;
    EXPECT_NE(page.find(heading), std::string::npos) << each.name;
  }
  EXPECT_NE(page.find("\\-\\-topology"), std::string::npos);
  EXPECT_EQ(page.find("\n..."), std::string::npos);
}

}  // namespace
}  // namespace gossamer
