#include "gossamer/base/toml.h"

#include <algorithm>
#include <limits>
#include <sstream>
#include <system_error>

// toml++ up to 3.4 calls a place unreachable that a character like U+00E9 reaches, where only
// whitespace is expected; there the answer is that it is none. Later versions say so themselves.
// What it assumes of a text, a text of anybody may break ("[?"): the checks that follow say so, and
// neither an assertion nor the optimiser may come before them.
#define TOML_HEADER_ONLY 1
#include <toml++/impl/forward_declarations.h>
#undef TOML_UNREACHABLE
#define TOML_UNREACHABLE return false
#undef TOML_ASSERT_ASSUME
#define TOML_ASSERT_ASSUME(expression) static_assert(true)
#include <toml++/impl/unicode.h>
#undef TOML_UNREACHABLE
#define TOML_UNREACHABLE __builtin_unreachable()
#include <toml++/toml.h>

#include "gossamer/base/disk.h"
#include "gossamer/base/errors.h"
#include "gossamer/base/toml_keys.h"
#include "gossamer/base/units.h"

namespace gossamer {

/// `table` belongs to `document`.
struct TomlTable::Node {
  std::shared_ptr<const toml::table> document;
  const toml::table* table;
  std::string file;
};

namespace {

constexpr std::size_t kLargestFile = 4'000'000;

std::string position(const std::string& file, const toml::source_region& region) {
  return file + ":" + std::to_string(region.begin.line) + ":" + std::to_string(region.begin.column);
}

/// What a complaint says it got: the type, and the value where it is short.
std::string describe(const toml::node& node) {
  std::ostringstream out;
  if (const auto* text = node.as_string()) {
    out << "text '" << text->get() << "'";
  } else if (const auto* integer = node.as_integer()) {
    out << "integer " << integer->get();
  } else if (const auto* number = node.as_floating_point()) {
    out << "number " << number->get();
  } else if (const auto* flag = node.as_boolean()) {
    out << (flag->get() ? "true" : "false");
  } else if (node.is_array()) {
    out << "an array";
  } else if (node.is_table()) {
    out << "a table";
  } else {
    out << "a date or time";
  }
  return out.str();
}

[[noreturn]] void fail_type(const std::string& file, std::string_view key, const toml::node& node,
                            std::string_view expected) {
  const std::string place = position(file, node.source());
  const std::string what = "'" + std::string(key) + "' must be " + std::string(expected);
  fail_argument({.place = place, .what = what, .got = describe(node)});
}

bool take(const toml::node& node, std::string& into) {
  const auto* text = node.as_string();
  if (text) into = text->get();
  return text;
}

bool take(const toml::node& node, bool& into) {
  const auto* flag = node.as_boolean();
  if (flag) into = flag->get();
  return flag;
}

bool take(const toml::node& node, std::int64_t& into) {
  const auto* integer = node.as_integer();
  if (integer) into = integer->get();
  return integer;
}

bool take(const toml::node& node, double& into) {
  if (const auto* integer = node.as_integer()) {
    into = static_cast<double>(integer->get());
    return true;
  }
  const auto* number = node.as_floating_point();
  if (number) into = number->get();
  return number;
}

template <class T>
bool read_one(const TomlTable::Node& from, std::string_view key, T& into,
              std::string_view expected) {
  const toml::node* node = from.table->get(key);
  if (!node) return false;
  if (!take(*node, into)) fail_type(from.file, key, *node, expected);
  return true;
}

template <class T>
bool read_list(const TomlTable::Node& from, std::string_view key, std::vector<T>& into,
               std::string_view expected) {
  const toml::node* node = from.table->get(key);
  if (!node) return false;
  const toml::array* array = node->as_array();
  if (!array) fail_type(from.file, key, *node, expected);
  std::vector<T> values;
  for (const toml::node& element : *array) {
    T value{};
    if (!take(element, value)) fail_type(from.file, key, element, expected);
    values.push_back(std::move(value));
  }
  into = std::move(values);
  return true;
}

/// Reads a text and parses it with one of the functions of units.h.
template <class T>
bool read_quantity(const TomlTable& table, std::string_view key, T& into,
                   T (*parse)(std::string_view, std::string_view)) {
  std::string text;
  if (!table.read(key, text)) return false;
  into = parse(text, table.place(key));
  return true;
}

}  // namespace

bool TomlTable::has(std::string_view key) const { return node_->table->contains(key); }

std::vector<std::string> TomlTable::keys() const {
  std::vector<std::string> names;
  for (const auto& [key, value] : *node_->table) names.emplace_back(key.str());
  return names;
}

void TomlTable::allow_only(std::span<const std::string_view> valid) const {
  for (const auto& [key, value] : *node_->table) {
    if (std::find(valid.begin(), valid.end(), key.str()) != valid.end()) continue;
    fail_unknown_name(position(node_->file, key.source()), "key", key.str(), valid);
  }
}

void TomlTable::require(std::string_view key) const {
  if (has(key)) return;
  const std::string where = place(key);
  fail_argument({.place = where,
                 .what = "a required key is missing",
                 .remedy = "add '" + std::string(key) + "' to this table"});
}

bool TomlTable::read(std::string_view key, std::string& into) const {
  return read_one(*node_, key, into, "text in quotes");
}

bool TomlTable::read(std::string_view key, bool& into) const {
  return read_one(*node_, key, into, "true or false");
}

bool TomlTable::read(std::string_view key, int& into) const {
  std::int64_t wide = 0;
  if (!read(key, wide)) return false;
  if (wide < std::numeric_limits<int>::min() || wide > std::numeric_limits<int>::max()) {
    fail_type(node_->file, key, *node_->table->get(key), "an integer of 32 bits");
  }
  into = static_cast<int>(wide);
  return true;
}

bool TomlTable::read(std::string_view key, std::int64_t& into) const {
  return read_one(*node_, key, into, "an integer");
}

bool TomlTable::read(std::string_view key, double& into) const {
  return read_one(*node_, key, into, "a number");
}

bool TomlTable::read(std::string_view key, std::vector<std::string>& into) const {
  return read_list(*node_, key, into, "an array of texts");
}

bool TomlTable::read(std::string_view key, std::vector<std::int64_t>& into) const {
  return read_list(*node_, key, into, "an array of integers");
}

bool TomlTable::read(std::string_view key, std::vector<double>& into) const {
  return read_list(*node_, key, into, "an array of numbers");
}

bool TomlTable::read_rate(std::string_view key, double& bytes_per_s) const {
  return read_quantity(*this, key, bytes_per_s, parse_rate);
}

bool TomlTable::read_duration(std::string_view key, double& seconds) const {
  return read_quantity(*this, key, seconds, parse_duration);
}

bool TomlTable::read_bytes(std::string_view key, std::int64_t& bytes) const {
  return read_quantity(*this, key, bytes, parse_bytes);
}

std::optional<TomlTable> TomlTable::table(std::string_view key) const {
  const toml::node* node = node_->table->get(key);
  if (!node) return std::nullopt;
  const toml::table* inner = node->as_table();
  if (!inner) fail_type(node_->file, key, *node, "a table");
  return TomlTable(std::make_shared<Node>(Node{node_->document, inner, node_->file}));
}

std::vector<TomlTable> TomlTable::tables(std::string_view key) const {
  const toml::node* node = node_->table->get(key);
  if (!node) return {};
  constexpr std::string_view kExpected = "an array of tables";
  const toml::array* array = node->as_array();
  if (!array) fail_type(node_->file, key, *node, kExpected);
  std::vector<TomlTable> inner;
  for (const toml::node& element : *array) {
    const toml::table* one = element.as_table();
    if (!one) fail_type(node_->file, key, element, kExpected);
    inner.emplace_back(std::make_shared<Node>(Node{node_->document, one, node_->file}));
  }
  return inner;
}

std::string TomlTable::place(std::string_view key) const {
  const toml::node* node = node_->table->get(key);
  return position(node_->file, node ? node->source() : node_->table->source());
}

void TomlTable::check(bool good, std::string_view key, std::string_view what,
                      const std::string& got) const {
  if (good) return;
  fail_argument({.place = place(key),
                 .what = "'" + std::string(key) + "' must be " + std::string(what),
                 .got = got});
}

TomlTable parse_toml(std::string_view text, std::string_view name) {
  const std::string file(name);
  refuse_long_keys(text, file);
  try {
    const auto document = std::make_shared<const toml::table>(toml::parse(text, name));
    return TomlTable(
        std::make_shared<TomlTable::Node>(TomlTable::Node{document, document.get(), file}));
  } catch (const toml::parse_error& error) {
    const std::string what = "not valid TOML: " + std::string(error.description());
    fail_argument({.place = position(file, error.source()), .what = what});
  }
}

TomlTable load_toml(const std::string& path) {
  if (!is_there(path)) {
    fail_io({.place = path,
             .what = "cannot be read",
             .got = std::make_error_code(std::errc::no_such_file_or_directory).message(),
             .remedy = "give the path of a TOML file"});
  }
  const FileBytes bytes = read_file(path, kLargestFile);
  return parse_toml({reinterpret_cast<const char*>(bytes.memory.get()), bytes.size}, path);
}

}  // namespace gossamer
