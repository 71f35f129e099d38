#include "gossamer/recipe/file.h"

#include <array>
#include <cctype>
#include <cstdio>
#include <sstream>

#include "gossamer/base/errors.h"
#include "gossamer/base/toml.h"
#include "gossamer/recipe/fields.h"

namespace gossamer {
namespace {

void read_value(const TomlTable& table, std::string_view key, std::uint64_t* target) {
  std::int64_t value = 0;
  if (!table.read(key, value)) return;
  if (value < 0) {
    fail_argument({.place = "train",
                   .what = std::string(key) + " must be not negative",
                   .got = std::to_string(value)});
  }
  *target = static_cast<std::uint64_t>(value);
}

void read_value(const TomlTable& table, std::string_view key, const ChoiceRef& target) {
  std::string word;
  if (table.read(key, word)) target.set(word);
}

template <class Value>
void read_value(const TomlTable& table, std::string_view key, Value* target) {
  table.read(key, *target);
}

void read_fields(const TomlTable& file, Recipe& recipe) {
  const std::vector<RecipeField> fields = recipe_fields(recipe);
  std::vector<std::string_view> sections;
  for (const RecipeField& field : fields) {
    if (sections.empty() || sections.back() != field.section) sections.push_back(field.section);
  }
  file.allow_only(sections);
  for (const std::string_view section : sections) {
    const auto table = file.table(section);
    if (!table) continue;
    std::vector<std::string_view> keys;
    for (const RecipeField& field : fields) {
      if (field.section == section) keys.push_back(field.key);
    }
    table->allow_only(keys);
    for (const RecipeField& field : fields) {
      if (field.section != section) continue;
      std::visit([&](const auto& target) { read_value(*table, field.key, target); }, field.target);
    }
  }
}

std::string quoted(const std::string& text) {
  std::string quoted = "\"";
  for (const char c : text) {
    if (std::iscntrl(static_cast<unsigned char>(c)) != 0) {  // no line of TOML may hold it
      std::array<char, 8> code{};
      std::snprintf(code.data(), code.size(), "\\u%04x", static_cast<unsigned char>(c));
      quoted += code.data();
      continue;
    }
    if (c == '"' || c == '\\') quoted += '\\';
    quoted += c;
  }
  return quoted + "\"";
}

// A value as TOML.

std::string written(const std::string* text) { return quoted(*text); }
std::string written(const ChoiceRef& choice) { return quoted(choice.word()); }
std::string written(const bool* value) { return *value ? "true" : "false"; }
std::string written(const double* value) {
  std::ostringstream text;
  text.precision(17);
  text << *value;
  const std::string digits = text.str();
  return digits.find_first_of(".en") == std::string::npos ? digits + ".0" : digits;
}
std::string written(const std::vector<std::string>* entries) {
  std::string list;
  for (const std::string& entry : *entries) list += (list.empty() ? "" : ", ") + quoted(entry);
  return "[" + list + "]";
}
template <class Whole>
std::string written(const Whole* number) {
  return std::to_string(*number);
}

}  // namespace

void read_recipe(const std::string& path, Recipe& recipe) { read_fields(load_toml(path), recipe); }

void read_recipe_text(std::string_view text, std::string_view name, Recipe& recipe) {
  read_fields(parse_toml(text, name), recipe);
}

std::string to_toml(const Recipe& recipe) {
  Recipe copy = recipe;
  std::string text;
  std::string_view section;
  for (const RecipeField& field : recipe_fields(copy)) {
    if (field.section != section) {
      section = field.section;
      text += (text.empty() ? "[" : "\n[") + std::string(section) + "]\n";
    }
    const auto write = [](const auto& target) { return written(target); };
    text += std::string(field.key) + " = " + std::visit(write, field.target) + "\n";
  }
  return text;
}

}  // namespace gossamer
