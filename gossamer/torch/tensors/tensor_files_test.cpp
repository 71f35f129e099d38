#include "gossamer/torch/tensors/tensor_files.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <vector>

#include "gossamer/base/test_folder.h"
#include "gossamer/torch/tensors/tensor_types.h"

namespace gossamer {
namespace {

std::shared_ptr<const SafetensorsFile> read(const std::filesystem::path& path) {
  return std::make_shared<const SafetensorsFile>(path);
}

TEST(TensorFiles, EveryTypeOfTheFormatComesBack) {
  const ScratchFolder folder;
  std::vector<at::Tensor> tensors;
  std::vector<TensorView> views;
  for (const TensorTypeRow& row : kTensorTypes) {
    EXPECT_EQ(tensor_dtype_bytes(row.word), c10::elementSize(row.type)) << row.torch;
    at::Tensor tensor = at::empty({2, 3}, row.type);
    auto* const bytes = static_cast<std::uint8_t*>(tensor.mutable_data_ptr());
    for (std::size_t i = 0; i < tensor.nbytes(); ++i) bytes[i] = static_cast<std::uint8_t>(i % 2);
    views.push_back(view_of_tensor(std::string(row.torch), tensor));
    tensors.push_back(std::move(tensor));
  }
  write_safetensors(folder / "f", views);
  auto file = read(folder / "f");
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const at::Tensor found = tensor_in(file, std::string(kTensorTypes[i].torch));
    EXPECT_EQ(found.scalar_type(), kTensorTypes[i].type);
    EXPECT_EQ(found.sizes(), tensors[i].sizes());
    EXPECT_EQ(std::memcmp(found.const_data_ptr(), tensors[i].const_data_ptr(), found.nbytes()), 0);
  }
  const at::Tensor kept = tensor_in(file, "float32");
  file.reset();
  EXPECT_TRUE(at::equal(kept, tensors[0]));
}

TEST(TensorFiles, EmptyAndUnalignedTensorsAreCopies) {
  const ScratchFolder folder;
  std::string header = R"({"b":{"dtype":"I8","shape":[1],"data_offsets":[0,1]},)"
                       R"("a":{"dtype":"F32","shape":[1],"data_offsets":[1,5]},)"
                       R"("e":{"dtype":"F32","shape":[0],"data_offsets":[5,5]}})";
  while ((sizeof(std::uint64_t) + header.size() + 1) % sizeof(float) == 0) header += ' ';
  const std::uint64_t length = header.size();
  const float value = 1.5f;
  std::string text(reinterpret_cast<const char*>(&length), sizeof length);
  text += header + "x" + std::string(reinterpret_cast<const char*>(&value), sizeof value);
  put_file(folder / "f", text);
  const auto file = read(folder / "f");
  EXPECT_EQ(tensor_in(file, "a").item<float>(), value);
  EXPECT_EQ(tensor_in(file, "e").numel(), 0);
  EXPECT_THROW(tensor_in(file, "c"), IoError);
}

TEST(TensorFiles, WhatTheFormatDoesNotHaveIsRefused) {
  const at::Tensor turned = at::zeros({2, 3}).t();
  EXPECT_THROW(view_of_tensor("x", turned), std::invalid_argument);
  EXPECT_THROW(view_of_tensor("x", at::zeros({2}, at::kComplexDouble)), std::invalid_argument);
  EXPECT_THROW(view_of_tensor("x", at::zeros({2}).to_sparse()), std::invalid_argument);
}

}  // namespace
}  // namespace gossamer
