// TOML of anybody, of which every key is read as every type.

#include "gossamer/base/fuzz.h"
#include "gossamer/base/toml.h"

namespace gossamer {
namespace toml_fuzz {

template <class T>
void read_as(const TomlTable& table, const std::string& key) {
  T value{};
  takes([&] { table.read(key, value); });
}

void read_all(const TomlTable& table) {
  constexpr std::string_view kValid[] = {"steps", "workers"};
  takes([&] { table.allow_only(kValid); });
  takes([&] { table.require("steps"); });
  for (const std::string& key : table.keys()) {
    fuzz_check(table.has(key), "a key is not there");
    read_as<std::string>(table, key);
    read_as<bool>(table, key);
    read_as<int>(table, key);
    read_as<std::int64_t>(table, key);
    read_as<double>(table, key);
    read_as<std::vector<std::string>>(table, key);
    read_as<std::vector<std::int64_t>>(table, key);
    read_as<std::vector<double>>(table, key);
    double number = 0;
    std::int64_t count = 0;
    takes([&] { table.read_rate(key, number); });
    takes([&] { table.read_duration(key, number); });
    takes([&] { table.read_bytes(key, count); });
    takes([&] { table.check(false, key, "something else", "this"); });
    takes([&] {
      if (const auto inner = table.table(key)) read_all(*inner);
    });
    takes([&] {
      for (const TomlTable& inner : table.tables(key)) read_all(inner);
    });
  }
}

}  // namespace toml_fuzz

bool fuzz_toml(std::span<const std::byte> bytes) {
  return takes([&] { toml_fuzz::read_all(parse_toml(FuzzBytes(bytes).text(), "a.toml")); });
}

}  // namespace gossamer
