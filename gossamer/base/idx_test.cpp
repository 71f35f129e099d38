#include "gossamer/base/idx.h"

#include <gtest/gtest.h>

#include <fstream>

#include "gossamer/base/errors.h"
#include "gossamer/base/gzip.h"

namespace gossamer {
namespace {

std::filesystem::path file_with(const std::string& name, const std::string& bytes) {
  const std::filesystem::path path = std::filesystem::path(testing::TempDir()) / name;
  std::ofstream(path, std::ios::binary) << bytes;
  return path;
}

const std::string kTwoByThree = std::string("\0\0\x08\x02\0\0\0\x02\0\0\0\x03", 12) + "abcdef";

TEST(Idx, ReadsShapeAndBytesPackedOrNot) {
  for (const std::string& bytes : {kTwoByThree, gzipped(kTwoByThree)}) {
    const IdxArray array = read_idx(file_with("two_by_three", bytes));
    EXPECT_EQ(array.shape, (std::vector<int>{2, 3}));
    EXPECT_EQ(std::string(array.values.begin(), array.values.end()), "abcdef");
  }
}

std::string message_of(const std::filesystem::path& path) {
  try {
    read_idx(path);
  } catch (const IoError& error) {
    return error.what();
  }
  return "no error";
}

TEST(Idx, SaysWhatIsWrong) {
  EXPECT_NE(message_of("/nowhere/digits").find("cannot open /nowhere/digits"), std::string::npos);
  EXPECT_NE(message_of(file_with("short", "ab")).find("less than 4 bytes"), std::string::npos);
  EXPECT_NE(message_of(file_with("text", "a text file")).find("another beginning"),
            std::string::npos);
  const std::string one_less = kTwoByThree.substr(0, kTwoByThree.size() - 1);
  EXPECT_NE(message_of(file_with("cut", one_less)).find("may be truncated"), std::string::npos);
  EXPECT_NE(message_of(file_with("cut.gz", gzipped(kTwoByThree).substr(0, 25))).find("IDX"),
            std::string::npos);
  EXPECT_NE(message_of(file_with("long", kTwoByThree + "g")).find("more bytes"), std::string::npos);
  const std::string huge("\0\0\x08\x02\xff\xff\xff\xff\xff\xff\xff\xff", 12);
  EXPECT_NE(message_of(file_with("huge", huge)).find("more than 4 GiB"), std::string::npos);
  const std::string promises("\0\0\x08\x01\x7f\xff\xff\xff", 8);
  EXPECT_NE(message_of(file_with("promises", promises)).find("truncated"), std::string::npos);
}

}  // namespace
}  // namespace gossamer
