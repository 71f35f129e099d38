#include "gossamer/data/idx.h"

#include <algorithm>
#include <limits>
#include <span>
#include <string>
#include <utility>

#include "gossamer/base/errors.h"
#include "gossamer/data/read_bytes.h"

namespace gossamer {
namespace {

constexpr std::size_t kLargest = std::size_t{1} << 32;  // bytes that we are willing to hold
constexpr std::size_t kMostDimensions = 4;
constexpr const char* kDamaged = "it is truncated or damaged; fetch it again";

using Path = std::filesystem::path;
using Bytes = std::span<const std::uint8_t>;

[[noreturn]] void refuse(const Path& path, const std::string& what, const std::string& got,
                         const std::string& remedy) {
  fail_io({.place = "idx", .what = quoted(path) + " " + what, .got = got, .remedy = remedy});
}

[[noreturn]] void refuse_size(const Path& path, const std::string& wanted, const std::string& got) {
  refuse(path, "must have " + wanted + " bytes", got, kDamaged);
}

/// The number of dimensions.
std::size_t dimensions_of(const Path& path, Bytes head) {
  constexpr std::uint8_t kUnsignedBytes = 8;
  if (head.size() >= 4 && head[0] == 0 && head[1] == 0 && head[2] == kUnsignedBytes &&
      head[3] >= 1 && head[3] <= kMostDimensions) {
    return head[3];
  }
  std::string got = head.empty() ? "no byte" : "";
  for (const std::uint8_t byte : head.first(std::min<std::size_t>(head.size(), 4))) {
    got.append(got.empty() ? "" : " ").append(std::to_string(byte));
  }
  refuse(path, "is not an IDX file of bytes: it must begin with 0 0 8 and a number of dimensions",
         got, "give the images or labels file of an MNIST-like set");
}

std::uint32_t big_endian(Bytes bytes) {
  std::uint32_t value = 0;
  for (const std::uint8_t byte : bytes) value = (value << 8) | byte;
  return value;
}

/// What the beginning of the file says.
struct Header {
  std::vector<int> shape;
  std::size_t bytes = 0;   // of itself
  std::size_t values = 1;  // that follow
};

Header read_header(const Path& path) {
  const std::vector<std::uint8_t> all = read_bytes(path, 4 + 4 * kMostDimensions);
  const Bytes head(all);
  const std::size_t dimensions = dimensions_of(path, head);
  Header header{.shape = {}, .bytes = 4 + 4 * dimensions};
  if (head.size() < header.bytes) {
    refuse_size(path, "a header of " + std::to_string(header.bytes), std::to_string(head.size()));
  }
  for (std::size_t k = 0; k < dimensions; ++k) {
    const std::uint32_t size = big_endian(head.subspan(4 + 4 * k, 4));
    const bool fits = size <= std::numeric_limits<int>::max();
    if (!fits || (size > 0 && header.values > kLargest / size)) {
      refuse(path, "has a shape of more than 4 GiB or a size of more than 2 GiB",
             std::to_string(header.values) + " times " + std::to_string(size), kDamaged);
    }
    header.values *= size;
    header.shape.push_back(static_cast<int>(size));
  }
  return header;
}

}  // namespace

IdxArray read_idx(const Path& path) {
  Header header = read_header(path);
  const std::size_t wanted = header.bytes + header.values;
  // Memory grows with what is there: the shape may promise more than the file has.
  std::vector<std::uint8_t> bytes = read_bytes(path, static_cast<std::int64_t>(wanted) + 1);
  if (bytes.size() != wanted) {
    refuse_size(path, std::to_string(wanted),
                bytes.size() > wanted ? "more" : std::to_string(bytes.size()));
  }
  bytes.erase(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(header.bytes));
  return {.shape = std::move(header.shape), .values = std::move(bytes)};
}

}  // namespace gossamer
