#pragma once
/// Reads TOML specs strictly: every complaint names file, line and column, the key and its remedy.

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace gossamer {

/// A table of a parsed document; a cheap handle that keeps the document alive. Complaints about its
/// content are std::invalid_argument.
///
/// `read` leaves `into` as it is and returns false where the key is absent, so that the defaults of
/// a spec struct are the defaults of its file:
///
///     table.allow_only(keys);
///     table.require("steps");
///     table.read("steps", spec.steps);
class TomlTable {
 public:
  struct Node;  ///< known to toml.cpp only, which keeps toml++ out of every other file
  explicit TomlTable(std::shared_ptr<const Node> node) : node_(std::move(node)) {}

  bool has(std::string_view key) const;
  /// In the order of the alphabet.
  std::vector<std::string> keys() const;

  /// Throws for the first key that is not in `valid`; the message lists them and the nearest.
  void allow_only(std::span<const std::string_view> valid) const;
  /// Throws unless the key is there.
  void require(std::string_view key) const;

  bool read(std::string_view key, std::string& into) const;
  bool read(std::string_view key, bool& into) const;
  /// Throws as well where the value does not fit.
  bool read(std::string_view key, int& into) const;
  bool read(std::string_view key, std::int64_t& into) const;
  /// Integers count as numbers.
  bool read(std::string_view key, double& into) const;
  bool read(std::string_view key, std::vector<std::string>& into) const;
  bool read(std::string_view key, std::vector<std::int64_t>& into) const;
  bool read(std::string_view key, std::vector<double>& into) const;

  /// Texts with a unit, see base/units.h.
  bool read_rate(std::string_view key, double& bytes_per_s) const;
  bool read_duration(std::string_view key, double& seconds) const;
  bool read_bytes(std::string_view key, std::int64_t& bytes) const;

  /// The table under `[key]`, if there is one.
  std::optional<TomlTable> table(std::string_view key) const;
  /// The tables under `[[key]]`; none where the key is absent.
  std::vector<TomlTable> tables(std::string_view key) const;

  /// "file:line:column" of the key's value, or of the table where the key is absent: for complaints
  /// of the caller about a value (out of range, unknown name).
  std::string place(std::string_view key) const;
  /// Throws unless `good`: "'key' must be `what`, got `got`".
  void check(bool good, std::string_view key, std::string_view what, const std::string& got) const;

 private:
  std::shared_ptr<const Node> node_;
};

/// Parses `text`; `name` stands for the file in messages. A syntax error is std::invalid_argument,
/// and so is a key with more than 32 dots.
TomlTable parse_toml(std::string_view text, std::string_view name);

/// Parses the file at `path`; throws IoError where it cannot be read, is no regular file or has
/// more than 4 MB.
TomlTable load_toml(const std::string& path);

}  // namespace gossamer
