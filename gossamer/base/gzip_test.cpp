#include "gossamer/base/gzip.h"

#include <gtest/gtest.h>
#include <zlib.h>

#include "gossamer/base/rng.h"

namespace gossamer {
namespace {

std::string unpacked(const std::string& packed, std::size_t size) {
  std::string text(size + 1, '\0');  // one more: what is too long shows
  z_stream stream{};
  EXPECT_EQ(inflateInit2(&stream, MAX_WBITS + 16), Z_OK);  // gzip only
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(packed.data()));
  stream.avail_in = static_cast<uInt>(packed.size());
  stream.next_out = reinterpret_cast<Bytef*>(text.data());
  stream.avail_out = static_cast<uInt>(text.size());
  EXPECT_EQ(inflate(&stream, Z_FINISH), Z_STREAM_END);
  text.resize(stream.total_out);
  inflateEnd(&stream);
  return text;
}

TEST(Gzip, HoldsTheTextWhetherItPacksOrNot) {
  std::string noise;
  Rng rng(3);
  for (int k = 0; k < 200'000; ++k) noise += static_cast<char>(rng.below(256));
  for (const std::string& text :
       {std::string(), std::string("a"), std::string(500'000, 'x'), noise}) {
    const std::string packed = gzipped(text);
    EXPECT_EQ(unpacked(packed, text.size()), text);
  }
  EXPECT_LT(gzipped(std::string(500'000, 'x')).size(), 2000u);
}

TEST(Gzip, IsForNamesThatEndSo) {
  const std::string text = "0123456789";
  EXPECT_EQ(packed_for("run/trace.json", text), text);
  EXPECT_EQ(packed_for("run.gz/trace", text), text);
  EXPECT_EQ(packed_for("run/trace.json.gz", text), gzipped(text));
}

}  // namespace
}  // namespace gossamer
