#pragma once
/// For fuzz targets: their table, the parts of an input, and what a reader may do with one.
///
/// Note [Fuzz targets]: a target is a function of bytes in `<reader>_fuzz.cpp`, and a row of the
/// table in tests/fuzz/targets.cpp. It returns whether the reader took the input. A reader refuses
/// what it does not take by an error of Gossamer; everything else that a target throws is a
/// finding. Inputs to begin with are in tests/fuzz/<name>/. All tests run them, as they are and
/// changed; tools/fuzz.sh looks for others.

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>

#include "gossamer/base/errors.h"

namespace gossamer {

struct FuzzTarget {
  std::string_view name;
  bool (*run)(std::span<const std::byte> input) = nullptr;
};

/// Throws std::logic_error unless `good`: a reader did what it must not.
inline void fuzz_check(bool good, const std::string& what) {
  if (!good) throw std::logic_error("fuzz target: " + what);
}

/// Whether `read` took what it was given. It may throw std::invalid_argument or IoError with a
/// message of Gossamer, which begins with its place.
template <class Read>
bool takes(const Read& read) {
  std::string said;
  try {
    read();
    return true;
  } catch (const std::invalid_argument& error) {
    said = error.what();
  } catch (const IoError& error) {
    said = error.what();
  }
  fuzz_check(said.starts_with('['), "refused without a place: " + said);
  fuzz_check(printable(said) == said, "refused with bytes that are no text");
  return false;
}

/// The bytes of an input, taken from its front.
class FuzzBytes {
 public:
  explicit FuzzBytes(std::span<const std::byte> bytes) : bytes_(bytes) {}

  bool empty() const { return bytes_.empty(); }
  /// Zeros where the input has ended.
  template <class T>
  T take() {
    T value = {};
    const std::span<const std::byte> from = take_bytes(sizeof(T));
    if (!from.empty()) std::memcpy(&value, from.data(), from.size());
    return value;
  }
  /// As many as there are, at most `count`.
  std::span<const std::byte> take_bytes(std::size_t count) {
    const std::span<const std::byte> taken = bytes_.first(std::min(count, bytes_.size()));
    bytes_ = bytes_.subspan(taken.size());
    return taken;
  }
  std::string_view take_text(std::size_t count) {
    const std::span<const std::byte> taken = take_bytes(count);
    return {reinterpret_cast<const char*>(taken.data()), taken.size()};
  }
  /// All that is left.
  std::string_view text() { return take_text(bytes_.size()); }

 private:
  std::span<const std::byte> bytes_;
};

}  // namespace gossamer
