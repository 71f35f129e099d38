#include "gossamer/cli/command_line.h"

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <string_view>
#include <vector>

#include "gossamer/base/errors.h"
#include "gossamer/base/outside_error.h"

namespace gossamer {
namespace {

std::string in_quotes(const std::string& text) { return "'" + text + "'"; }

std::string see_help(const std::string& name) { return "see `gossamer " + name + " --help`"; }

/// "TEXT:{a,b}" → a, b.
std::vector<std::string> choices_in(const std::string& type) {
  const auto begin = type.find('{');
  if (begin == type.npos || !type.ends_with('}')) return {};
  return CLI::detail::split(type.substr(begin + 1, type.size() - begin - 2), ',');
}

std::string value_of(const CLI::Option& option) {
  if (option.get_items_expected_max() == 0) return "";
  const std::string type = option.get_type_name();
  const std::string head = type.substr(0, type.find(':'));
  if (head == "INT" || head == "UINT") return "N";
  if (head == "FLOAT") return "X";
  return head == "TEXT" ? head : type;  // what it was given in words
}

FlagPage page_of(const CLI::Option& option) {
  FlagPage flag{.value = value_of(option),
                .help = option.get_description(),
                .fallback = option.get_default_str(),
                .group = option.get_group() == "Options" ? "" : option.get_group(),
                .choices = choices_in(option.get_type_name()),
                .is_positional = option.get_positional()};
  if (flag.is_positional) {
    flag.names = {option.get_name(/*positional=*/true)};
    flag.value.clear();
    return flag;
  }
  for (const std::string& name : option.get_snames()) flag.names.push_back("-" + name);
  for (const std::string& name : option.get_lnames()) flag.names.push_back("--" + name);
  return flag;
}

/// As keys of recipes are written: without dashes in front, and with underscores.
std::string bare(std::string word) {
  word.erase(0, word.find_first_not_of('-'));
  std::ranges::replace(word, '-', '_');
  return word;
}

[[noreturn]] void refuse_extras(const CLI::App& app, const std::string& name,
                                const std::vector<std::string>& extras) {
  const auto is_flag = [](const std::string& word) { return word.starts_with("-"); };
  const auto flag = std::ranges::find_if(extras, is_flag);
  const std::string word = flag == extras.end() ? extras.front() : *flag;
  const std::string nearest = flag == extras.end() ? "" : nearest_flag(app, word);
  fail_argument(
      {.place = name,
       .what = "unknown argument",
       .got = in_quotes(word.substr(0, word.find('='))),
       .remedy = (nearest.empty() ? "" : "did you mean '" + nearest + "'? ") + see_help(name)});
}

/// Splits at the first `sign`; the second part is empty where there is none.
std::pair<std::string, std::string> split_at(const std::string& text, const std::string& sign) {
  const auto at = text.find(sign);
  if (at == text.npos) return {text, ""};
  return {text.substr(0, at), text.substr(at + sign.size())};
}

std::string number_wanted(const CLI::App& app, const std::string& flag) {
  const CLI::Option* option = app.get_option_no_throw(flag);
  const bool is_whole = option != nullptr && value_of(*option) == "N";
  return flag + (is_whole ? " takes a whole number" : " takes a number");
}

/// A value that a validator has refused. CLI11 writes "NAME: REASON".
[[noreturn]] void refuse_value(const CLI::App& app, const std::string& name,
                               const std::string& text) {
  const auto [flag, reason] = split_at(text, ": ");
  const auto [value, range] = split_at(reason, " not in ");
  const CLI::Option* option = app.get_option_no_throw(flag);
  if (range.starts_with("{") && option != nullptr) {
    const std::vector<std::string> choices = choices_in(option->get_type_name());
    const std::vector<std::string_view> valid(choices.begin(), choices.end());
    fail_unknown_name(name, "value of " + flag, value, valid);
  }
  if (range.starts_with("range ")) {
    fail_argument({.place = name,
                   .what = flag + " must be from " + range.substr(6),
                   .got = in_quotes(split_at(value, "Value ").second),
                   .remedy = see_help(name)});
  }
  fail_argument({.place = name, .what = flag + " " + reason, .remedy = see_help(name)});
}

/// What CLI11 says in its own words, in ours.
[[noreturn]] void refuse(const CLI::App& app, const std::string& name,
                         const CLI::ParseError& error) {
  const std::string text = error.what();
  Complaint complaint{.place = name, .what = text, .remedy = see_help(name)};
  std::string what;
  if (dynamic_cast<const CLI::ValidationError*>(&error) != nullptr) {
    refuse_value(app, name, text);
  } else if (text.starts_with("Could not convert: ")) {
    const auto [flag, value] = split_at(text.substr(19), " = ");
    what = number_wanted(app, flag);
    complaint.got = in_quotes(value);
  } else if (dynamic_cast<const CLI::ExcludesError*>(&error) != nullptr) {
    const auto [one, other] = split_at(text, " excludes ");
    what = one + " and " + other + " contradict each other";
    complaint.remedy = "give one of them; " + complaint.remedy;
  } else if (dynamic_cast<const CLI::RequiredError*>(&error) != nullptr) {
    what = split_at(text, " is required").first + " is missing";
  } else if (text.find(": At Most 1 required") != text.npos) {
    what = split_at(text, ":").first + " is given more than once";
    complaint.remedy = "give it once; " + complaint.remedy;
  } else if (text.ends_with(" missing")) {
    what = split_at(text, ":").first + " needs a value";
  }
  if (!what.empty()) complaint.what = what;
  fail_argument(complaint);
}

}  // namespace

const CLI::Validator kFromOneUp(
    [](std::string& text) {
      const bool digits = !text.empty() && text.find_first_not_of("0123456789") == text.npos;
      const bool fits = digits && text.size() <= 9 && std::stoi(text) >= 1;
      return fits ? std::string() : "takes a whole number from 1 up, got '" + text + "'";
    },
    "N");

CommandPage page_of(const CLI::App& app, std::string_view name) {
  CommandPage page{
      .name = std::string(name), .about = app.get_description(), .footer = app.get_footer()};
  FlagPage help;
  for (const CLI::Option* option : app.get_options()) {
    if (option == app.get_help_ptr()) {
      help = page_of(*option);
      help.help = "this text";
    } else {
      page.flags.push_back(page_of(*option));
    }
  }
  page.flags.push_back(help);
  return page;
}

std::string nearest_flag(const CLI::App& app, const std::string& word) {
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back(name);
  }
  std::vector<std::string> keys;
  for (const std::string& name : names) keys.push_back(bare(name));
  const std::string asked = bare(word.substr(0, word.find('=')));
  const std::vector<std::string_view> views(keys.begin(), keys.end());
  const std::string nearest = nearest_name(asked, views);
  const auto at = std::ranges::find(keys, nearest);
  return at == keys.end() ? "" : "--" + names[static_cast<std::size_t>(at - keys.begin())];
}

void parse_arguments(CLI::App& app, const std::string& name, std::vector<std::string> arguments) {
  std::ranges::reverse(arguments);  // as CLI11 wants them
  app.allow_extras();               // refused here, with the nearest flag
  try {
    app.parse(arguments);
  } catch (const CLI::CallForHelp&) {
    throw HelpAsked{page_of(app, name)};
  } catch (const CLI::ParseError& error) {
    refuse(app, name, error);
  }
  if (const std::vector<std::string> extras = app.remaining(); !extras.empty()) {
    refuse_extras(app, name, extras);
  }
}

void parse_command_line(CLI::App& app, const std::string& name, int argc, char** argv) {
  parse_arguments(app, name, {argv + 1, argv + argc});
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
  fail_outside({.place = place, .what = "cannot write " + what, .got = "'" + path + "'"});
}

}  // namespace gossamer
