#include "gossamer/checkpoint/keys.h"

#include <gtest/gtest.h>

#include <array>
#include <string>

#include "gossamer/base/test_folder.h"

namespace gossamer {
namespace {

TEST(CheckpointKeys, AreThoseOfTheDocs) {
  EXPECT_EQ(parameter_key("0.weight"), "parameter/0.weight");
  EXPECT_EQ(buffer_key("1.running_mean"), "buffer/1.running_mean");
  EXPECT_EQ(mixed_key("0.weight"), "mixed/0.weight");
  EXPECT_EQ(optimizer_key("0.weight", "exp_avg"), "optimizer/0.weight/exp_avg");
  EXPECT_EQ(optimizer_key("0.weight"), "optimizer/0.weight/");
  EXPECT_EQ(pattern_key("extra", "correction", "0.weight"), "pattern/extra/correction/0.weight");
  EXPECT_EQ(group_key(3), "group/3");
  const std::string page = get_file("docs/checkpoint.md");
  for (const std::string& key : {parameter_key("NAME"), buffer_key("NAME"), mixed_key("NAME"),
                                 optimizer_key("NAME", "exp_avg"), optimizer_key("NAME", kUpdates),
                                 pattern_key("PATTERN", "VECTOR", "NAME"), group_key(0)}) {
    EXPECT_TRUE(contains(page, "`" + key)) << key;
  }
}

TEST(CheckpointKeys, ModelLinesHaveNameShapeAndType) {
  const std::array<std::int64_t, 2> shape{2, 3};
  EXPECT_EQ(model_line("parameter", "0.weight", shape, "float32"),
            "parameter '0.weight' [2, 3] float32");
  EXPECT_EQ(model_line("buffer", "n", {}, "int64"), "buffer 'n' [] int64");
}

}  // namespace
}  // namespace gossamer
