#include "gossamer/base/idx.h"

#include <zlib.h>

#include <array>
#include <memory>
#include <string>

#include "gossamer/base/errors.h"

namespace gossamer {
namespace {

constexpr std::size_t kLargest = std::size_t{1} << 32;  // bytes that we are willing to hold

struct Close {
  void operator()(gzFile file) const { gzclose(file); }
};
using File = std::unique_ptr<gzFile_s, Close>;

[[noreturn]] void refuse(const std::filesystem::path& path, const std::string& got,
                         const std::string& remedy = "") {
  const std::string what = path.string() + " must be an IDX file of bytes";
  fail_io({.place = "idx", .what = what, .got = got, .remedy = remedy});
}

/// As many bytes as are there, at most `count`.
std::size_t read_some(gzFile file, std::uint8_t* to, std::size_t count) {
  constexpr std::size_t kAtOnce = std::size_t{1} << 30;
  std::size_t done = 0;
  while (done < count) {
    const auto wish = static_cast<unsigned>(std::min(count - done, kAtOnce));
    const int got = gzread(file, to + done, wish);
    if (got <= 0) break;
    done += static_cast<std::size_t>(got);
  }
  return done;
}

}  // namespace

IdxArray read_idx(const std::filesystem::path& path) {
  const File file(gzopen(path.c_str(), "rb"));
  if (file == nullptr) {
    fail_io({.place = "idx", .what = "cannot open " + path.string(), .got = "", .remedy = ""});
  }
  std::array<std::uint8_t, 4> head{};
  if (read_some(file.get(), head.data(), 4) < 4) refuse(path, "less than 4 bytes");
  constexpr std::uint8_t kUnsignedBytes = 8;
  if (head[0] != 0 || head[1] != 0 || head[2] != kUnsignedBytes || head[3] == 0 || head[3] > 4) {
    refuse(path, "another beginning", "it begins with 0, 0, 8 and the number of dimensions");
  }
  IdxArray array;
  std::size_t count = 1;
  for (int k = 0; k < head[3]; ++k) {
    std::array<std::uint8_t, 4> size{};
    if (read_some(file.get(), size.data(), 4) < 4) refuse(path, "an end within the shape");
    const std::uint32_t value = (std::uint32_t{size[0]} << 24) | (std::uint32_t{size[1]} << 16) |
                                (std::uint32_t{size[2]} << 8) | std::uint32_t{size[3]};
    if (value > kLargest || (value > 0 && count > kLargest / value)) {
      refuse(path, "a shape of more than 4 GiB");
    }
    count *= value;
    array.shape.push_back(static_cast<int>(value));
  }
  // Memory grows with what is there: the shape may promise more than the file has.
  constexpr std::size_t kPiece = std::size_t{1} << 24;
  while (array.values.size() < count) {
    const std::size_t before = array.values.size();
    array.values.resize(std::min(count, before + kPiece));
    const std::size_t wish = array.values.size() - before;
    if (read_some(file.get(), array.values.data() + before, wish) < wish) {
      refuse(path, "fewer bytes than the " + std::to_string(count) + " of its shape",
             "it may be truncated");
    }
  }
  std::uint8_t more = 0;
  if (read_some(file.get(), &more, 1) != 0) refuse(path, "more bytes than its shape has");
  return array;
}

}  // namespace gossamer
