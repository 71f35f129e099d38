#include "gossamer/base/codec.h"

#include <gtest/gtest.h>

#include <stdexcept>

namespace gossamer {
namespace {

TEST(Codec, IsFoundByItsName) {
  for (const Codec codec : kAllCodecs) EXPECT_EQ(find_codec(name_of(codec)), codec);
  EXPECT_EQ(find_codec("int8"), Codec::int8);
  EXPECT_THROW(find_codec("BF16"), std::invalid_argument);
  EXPECT_THROW(find_codec(""), std::invalid_argument);
}

TEST(Codec, BytesCountTheScalesOfInt8AndTheWidthOfUncodedElements) {
  EXPECT_EQ(coded_bytes(Codec::fp32, 10), 40u);
  EXPECT_EQ(coded_bytes(Codec::fp32, 10, DType::f64), 80u);
  EXPECT_EQ(coded_bytes(Codec::bf16, 10, DType::f64), 20u);
  for (const auto& [count, bytes] :
       {std::pair{0, 0}, {1, 5}, {255, 259}, {256, 260}, {257, 265}, {512, 520}, {1000, 1016}}) {
    EXPECT_EQ(coded_bytes(Codec::int8, count), static_cast<std::size_t>(bytes)) << count;
  }
}

}  // namespace
}  // namespace gossamer
