#include "gossamer/base/idx.h"

#include <zlib.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <limits>
#include <memory>
#include <string>

#include "gossamer/base/errors.h"

namespace gossamer {
namespace {

constexpr std::size_t kLargest = std::size_t{1} << 32;  // bytes that we are willing to hold
constexpr int kMostDimensions = 4;
constexpr const char* kDamaged = "it is truncated or damaged; fetch it again";

struct Close {
  void operator()(gzFile file) const { gzclose(file); }
};
using File = std::unique_ptr<gzFile_s, Close>;

std::string quoted(const std::filesystem::path& path) {
  return std::string("'").append(path.string()).append("'");
}

[[noreturn]] void refuse(const std::filesystem::path& path, const std::string& what,
                         const std::string& got, const std::string& remedy) {
  fail_io({.place = "idx", .what = quoted(path) + " " + what, .got = got, .remedy = remedy});
}

File open(const std::filesystem::path& path) {
  if (std::error_code error; !std::filesystem::is_regular_file(path, error)) {
    refuse(path, "is not a file", error ? error.message() : "something else", "check the path");
  }
  File file(gzopen(path.c_str(), "rb"));
  if (!file) refuse(path, "cannot be opened", std::strerror(errno), "check the permissions");
  return file;
}

/// As many bytes as are there, at most `count`.
std::size_t read_some(gzFile file, std::uint8_t* to, std::size_t count) {
  constexpr std::size_t kBytesAtOnce = std::size_t{1} << 30;
  std::size_t done = 0;
  while (done < count) {
    const auto wish = static_cast<unsigned>(std::min(count - done, kBytesAtOnce));
    const int got = gzread(file, to + done, wish);
    if (got <= 0) break;
    done += static_cast<std::size_t>(got);
  }
  return done;
}

/// What to say where the file has too few bytes: gzip may know why.
[[noreturn]] void refuse_end(const std::filesystem::path& path, gzFile file,
                             const std::string& expected, std::size_t got) {
  int code = Z_OK;
  const char* text = gzerror(file, &code);
  if (code != Z_OK) refuse(path, "is a broken gzip file", text, kDamaged);
  refuse(path, "must have " + expected + " bytes", std::to_string(got), kDamaged);
}

/// The number of dimensions.
int read_magic(const std::filesystem::path& path, gzFile file) {
  std::array<std::uint8_t, 4> head{};
  const std::size_t there = read_some(file, head.data(), 4);
  constexpr std::uint8_t kUnsignedBytes = 8;
  if (there == 4 && head[0] == 0 && head[1] == 0 && head[2] == kUnsignedBytes && head[3] >= 1 &&
      head[3] <= kMostDimensions) {
    return head[3];
  }
  std::string got = there == 0 ? "no byte" : "";
  for (std::size_t i = 0; i < there; ++i) {
    got.append(i == 0 ? "" : " ").append(std::to_string(head[i]));
  }
  refuse(path, "is not an IDX file of bytes: it must begin with 0 0 8 and a number of dimensions",
         got, "give the images or labels file of an MNIST-like set");
}

IdxArray read_shape(const std::filesystem::path& path, gzFile file) {
  const int dimensions = read_magic(path, file);
  IdxArray array;
  std::size_t count = 1;
  for (int k = 0; k < dimensions; ++k) {
    std::array<std::uint8_t, 4> size{};
    const std::size_t there = read_some(file, size.data(), 4);
    const auto at = 4 * static_cast<std::size_t>(k + 1);
    if (there < 4) {
      const int header = 4 + 4 * dimensions;
      refuse_end(path, file, "a header of " + std::to_string(header), at + there);
    }
    const std::uint32_t value = (std::uint32_t{size[0]} << 24) | (std::uint32_t{size[1]} << 16) |
                                (std::uint32_t{size[2]} << 8) | std::uint32_t{size[3]};
    if (value > std::numeric_limits<int>::max() || (value > 0 && count > kLargest / value)) {
      refuse(path, "has a shape of more than 4 GiB or a size of more than 2 GiB",
             std::to_string(count) + " times " + std::to_string(value), kDamaged);
    }
    count *= value;
    array.shape.push_back(static_cast<int>(value));
  }
  return array;
}

}  // namespace

IdxArray read_idx(const std::filesystem::path& path) {
  const File file = open(path);
  IdxArray array = read_shape(path, file.get());
  std::size_t count = 1;
  for (const int size : array.shape) count *= static_cast<std::size_t>(size);
  const std::size_t header = 4 + 4 * array.shape.size();
  // Memory grows with what is there: the shape may promise more than the file has.
  constexpr std::size_t kPiece = std::size_t{1} << 24;
  while (array.values.size() < count) {
    const std::size_t before = array.values.size();
    array.values.resize(std::min(count, before + kPiece));
    const std::size_t wish = array.values.size() - before;
    const std::size_t there = read_some(file.get(), array.values.data() + before, wish);
    if (there < wish) {
      refuse_end(path, file.get(), std::to_string(header + count), header + before + there);
    }
  }
  std::uint8_t more = 0;
  if (read_some(file.get(), &more, 1) != 0) {
    refuse(path, "must have " + std::to_string(header + count) + " bytes", "more", kDamaged);
  }
  return array;
}

}  // namespace gossamer
