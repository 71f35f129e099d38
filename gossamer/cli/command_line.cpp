#include "gossamer/cli/command_line.h"

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <iostream>
#include <string_view>
#include <vector>

#include "gossamer/base/errors.h"
#include "gossamer/cli/commands.h"

namespace gossamer {
namespace {

void refuse_extras(const CLI::App& app, const std::string& name) {
  const std::vector<std::string> extras = app.remaining();
  if (extras.empty()) return;
  const auto flag = std::find_if(extras.begin(), extras.end(),
                                 [](const std::string& word) { return word.starts_with("-"); });
  const std::string word = flag == extras.end() ? extras.front() : *flag;
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options()) names.push_back(option->get_name());
  const std::vector<std::string_view> views(names.begin(), names.end());
  const std::string nearest = nearest_name(word.substr(0, word.find('=')), views);
  fail_argument({.place = name,
                 .what = "unknown argument",
                 .got = "'" + word + "'",
                 .remedy = (nearest.empty() ? "" : "did you mean '" + nearest + "'? ") +
                           std::string("see `gossamer " + name + " --help`")});
}

}  // namespace

const CLI::Validator kFromOneUp(
    [](std::string& text) {
      const bool digits = !text.empty() && text.find_first_not_of("0123456789") == text.npos;
      const bool fits = digits && text.size() <= 9 && std::stoi(text) >= 1;
      return fits ? std::string() : "takes a whole number from 1 up, got '" + text + "'";
    },
    "N");

std::optional<int> parse_command_line(CLI::App& app, const std::string& name, int argc,
                                      char** argv) {
  app.allow_extras();  // refused here, with the nearest flag
  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp&) {
    std::cout << app.help() << std::flush;
    return 0;
  } catch (const CLI::ParseError& error) {
    std::fprintf(stderr, "[%s] %s; see `gossamer %s --help`\n", name.c_str(), error.what(),
                 name.c_str());
    return kExitUsage;
  }
  refuse_extras(app, name);
  return std::nullopt;
}

void write_text_file(const std::string& place, const std::string& what, const std::string& path,
                     const std::string& text) {
  std::ofstream file(path, std::ios::binary);
  file << text;
  file.close();
  if (file) {
    std::fprintf(stderr, "wrote %s\n", path.c_str());
    return;
  }
  fail_io({.place = place, .what = "cannot write " + what, .got = "'" + path + "'"});
}

}  // namespace gossamer
