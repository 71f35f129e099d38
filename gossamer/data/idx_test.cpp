#include "gossamer/data/idx.h"

#include <gtest/gtest.h>

#include <fstream>

#include "gossamer/base/errors.h"
#include "gossamer/base/gzip.h"
#include "gossamer/base/test_errors.h"
#include "gossamer/data/data_fixture.h"

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

std::string message_about(const std::filesystem::path& path) {
  return message_of<IoError>([&] { read_idx(path); });
}

TEST(Idx, NamesTheFileAndItsFault) {
  const auto fault = [](const std::string& name, const std::string& bytes) {
    return message_about(file_with(name, bytes));
  };
  expect_names(message_about("/nowhere/digits"), "'/nowhere/digits'", "not a file");
  expect_names(message_about(testing::TempDir()), "'", "not a file");
  expect_names(fault("none", ""), "none", "no byte");
  expect_names(fault("short", "ab"), "short", "got 97 98");
  expect_names(fault("text", "a text file"), "text", "must begin with 0 0 8");
  expect_names(fault("type", std::string("\0\0\x09\x01\0\0\0\0", 8)), "type", "got 0 0 9 1");
  expect_names(fault("header", std::string("\0\0\x08\x03\0", 5)), "header", "header of 16 bytes");
  const std::string one_less = kTwoByThree.substr(0, kTwoByThree.size() - 1);
  expect_names(fault("cut", one_less), "cut", "must have 18 bytes, got 17");
  expect_names(fault("cut.gz", gzipped(kTwoByThree).substr(0, 25)), "cut.gz", "broken gzip");
  expect_names(fault("long", kTwoByThree + "g"), "long", "must have 18 bytes, got more");
  const std::string huge("\0\0\x08\x02\xff\xff\xff\xff\xff\xff\xff\xff", 12);
  expect_names(fault("huge", huge), "huge", "more than 4 GiB");
  const std::string cube("\0\0\x08\x03\x40\0\0\0\x40\0\0\0\x40\0\0\0", 16);
  expect_names(fault("cube", cube), "cube", "more than 4 GiB");
  const std::string promises("\0\0\x08\x01\x7f\xff\xff\xff", 8);
  expect_names(fault("promises", promises), "promises", "truncated");
}

}  // namespace
}  // namespace gossamer
