#include "gossamer/base/gzip.h"

#include <zlib.h>

#include <algorithm>
#include <limits>

#include "gossamer/base/errors.h"

namespace gossamer {
namespace {

constexpr int kGzip = 16;  // added to the window's bits: with the header and trailer of gzip
constexpr int kLevel = 5;
constexpr int kMemory = 8;

/// zlib counts what it is given in unsigned int.
constexpr std::size_t kAtOnce = std::numeric_limits<uInt>::max();

}  // namespace

std::string gzipped(std::string_view text) {
  z_stream stream{};
  const int begun =
      deflateInit2(&stream, kLevel, Z_DEFLATED, MAX_WBITS + kGzip, kMemory, Z_DEFAULT_STRATEGY);
  GOSSAMER_ASSERT(begun == Z_OK);
  std::string packed(deflateBound(&stream, static_cast<uLong>(text.size())), '\0');
  std::size_t written = 0;
  int state = Z_OK;
  while (state == Z_OK) {
    const std::size_t in = std::min(text.size(), kAtOnce);
    const std::size_t room = std::min(packed.size() - written, kAtOnce);
    stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
    stream.avail_in = static_cast<uInt>(in);
    stream.next_out = reinterpret_cast<Bytef*>(packed.data() + written);
    stream.avail_out = static_cast<uInt>(room);
    state = deflate(&stream, in == text.size() ? Z_FINISH : Z_NO_FLUSH);
    text.remove_prefix(in - stream.avail_in);
    written += room - stream.avail_out;
  }
  deflateEnd(&stream);
  GOSSAMER_ASSERT(state == Z_STREAM_END);
  packed.resize(written);
  return packed;
}

std::string packed_for(const std::filesystem::path& path, std::string text) {
  return path.extension() == ".gz" ? gzipped(text) : text;
}

}  // namespace gossamer
