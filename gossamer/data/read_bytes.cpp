#include "gossamer/data/read_bytes.h"

#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <utility>

#include "gossamer/base/errors.h"

namespace gossamer {

std::vector<std::uint8_t> read_bytes(const std::filesystem::path& path, std::int64_t limit) {
  const std::string name = quoted(path);
  if (std::error_code error; !std::filesystem::is_regular_file(path, error)) {
    fail_io({.place = "data",
             .what = name + " is not a file",
             .got = error ? error.message() : "something else",
             .remedy = "check the path"});
  }
  const std::unique_ptr<gzFile_s, int (*)(gzFile)> file(gzopen(path.c_str(), "rb"), gzclose);
  if (!file) {
    fail_io({.place = "data",
             .what = name + " cannot be opened",
             .got = std::strerror(errno),
             .remedy = "check the permissions"});
  }
  std::vector<std::uint8_t> bytes;
  constexpr std::size_t kChunk = 1 << 20;
  while (static_cast<std::int64_t>(bytes.size()) < limit) {
    const std::size_t had = bytes.size();
    const std::size_t ask = std::min(kChunk, static_cast<std::size_t>(limit) - had);
    bytes.resize(had + ask);
    const int got = gzread(file.get(), bytes.data() + had, static_cast<unsigned>(ask));
    bytes.resize(had + static_cast<std::size_t>(std::max(got, 0)));
    int code = Z_OK;
    const char* text = gzerror(file.get(), &code);
    if (got < 0 || code != Z_OK) {
      fail_io({.place = "data",
               .what = name + " is a broken gzip file",
               .got = text,
               .remedy = "fetch it again"});
    }
    if (got == 0) break;
  }
  return bytes;
}

std::vector<std::uint8_t> read_whole(const std::filesystem::path& path, std::int64_t most) {
  std::vector<std::uint8_t> bytes = read_bytes(path, most + 1);
  if (std::cmp_greater(bytes.size(), most)) {
    fail_io({.place = "data",
             .what = quoted(path) + " must have at most " + std::to_string(most) + " bytes",
             .got = "more",
             .remedy = "give a part of it"});
  }
  return bytes;
}

std::string quoted(const std::filesystem::path& path) {
  std::string text = "'";
  return text.append(path.string()).append("'");
}

}  // namespace gossamer
