#include "gossamer/checkpoint/keys.h"

namespace gossamer {
namespace {

std::string joined(std::string_view first, std::string_view second) {
  return std::string(first).append("/").append(second);
}

}  // namespace

std::string parameter_key(std::string_view name) { return joined("parameter", name); }

std::string buffer_key(std::string_view name) { return joined("buffer", name); }

std::string mixed_key(std::string_view name) { return joined("mixed", name); }

std::string beside_key(std::string_view name) { return joined("beside", name); }

std::string optimizer_key(std::string_view name, std::string_view vector) {
  return joined(joined("optimizer", name), vector);
}

std::string pattern_key(std::string_view pattern, std::string_view vector, std::string_view name) {
  return std::string(kPatternPrefix) + joined(joined(pattern, vector), name);
}

std::string group_key(int group) { return joined("group", std::to_string(group)); }

std::string model_line(std::string_view kind, std::string_view name,
                       std::span<const std::int64_t> shape, std::string_view dtype) {
  std::string sizes;
  for (const std::int64_t size : shape) {
    sizes += (sizes.empty() ? "" : ", ") + std::to_string(size);
  }
  return std::string(kind)
      .append(" '")
      .append(name)
      .append("' [")
      .append(sizes)
      .append("] ")
      .append(dtype);
}

}  // namespace gossamer
