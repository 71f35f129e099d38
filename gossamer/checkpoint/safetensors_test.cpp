#include "gossamer/checkpoint/safetensors.h"

#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <cstring>
#include <limits>

#include "gossamer/base/test_folder.h"

namespace gossamer {
namespace {

std::string bytes_text(std::span<const std::byte> data) {
  return {reinterpret_cast<const char*>(data.data()), data.size()};
}

template <class T>
std::string raw(const T& value) {
  return bytes_text(std::as_bytes(std::span(&value, 1)));
}

/// A file as the specification lays it out, with any header and data.
std::string file_text(const std::string& header, const std::string& data) {
  return raw(std::uint64_t{header.size()}) + header + data;
}

TEST(Safetensors, BytesAreThoseOfTheSpecification) {
  const ScratchFolder folder;
  const std::array<float, 2> values{1.0f, -2.0f};
  const std::vector<TensorView> tensors{view_tensor("a", values)};
  write_safetensors(folder / "f", tensors, {{"k", "v"}});
  const std::string header =
      R"({"__metadata__":{"k":"v"},"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})";
  // The next multiple of 64 after 8 bytes of length and 79 of header is 128.
  ASSERT_EQ(header.size(), 79u);
  const std::string length{'\x78', 0, 0, 0, 0, 0, 0, 0};
  const std::string data{0, 0, '\x80', '\x3f', 0, 0, 0, '\xc0'};
  EXPECT_EQ(get_file(folder / "f"), length + header + std::string(128 - 87, ' ') + data);
}

TEST(Safetensors, DigestIsThatOfTheFile) {
  const ScratchFolder folder;
  const std::vector<std::uint8_t> values(3'000'001, 7);
  const std::vector<TensorView> tensors{view_tensor("a", values)};
  const FileDigest digest = write_safetensors(folder / "f", tensors);
  EXPECT_EQ(digest, digest_file(folder / "f"));
}

TEST(Safetensors, ReadsWhatOthersWrite) {
  const ScratchFolder folder;
  // No padding, tensors not in the order of the data, a key that readers must ignore.
  const std::string header =
      R"({"b":{"data_offsets":[4,6],"shape":[1],"dtype":"BF16"},)"
      R"("a":{"dtype":"I8","shape":[2,2],"data_offsets":[0,4],"note":[1]},"s":)"
      R"({"dtype":"F64","shape":[],"data_offsets":[6,14]}})";
  put_file(folder / "f", file_text(header, "abcdef" + raw(0.5)));
  const SafetensorsFile file(folder / "f");
  ASSERT_EQ(file.tensors().size(), 3u);
  EXPECT_EQ(file.tensors()[0].name, "a");
  EXPECT_EQ(bytes_text(file.at("a").data), "abcd");
  EXPECT_EQ(bytes_text(file.at("b").data), "ef");
  EXPECT_EQ(file.at("a").shape, (std::vector<std::int64_t>{2, 2}));
  double value = 0;
  file.copy("s", std::span(&value, 1));
  EXPECT_EQ(value, 0.5);
  EXPECT_TRUE(file.metadata().empty());
}

TEST(Safetensors, RoundTripKeepsEveryBit) {
  const ScratchFolder folder;
  const std::array<float, 4> floats{std::bit_cast<float>(0x7fc12345u),  // quiet NaN with a payload
                                    std::bit_cast<float>(0xff812345u),  // signalling, negative
                                    -0.0f, std::numeric_limits<float>::denorm_min()};
  const std::array<double, 1> doubles{std::bit_cast<double>(0x7ff4000000abcdefULL)};
  const std::array<std::int64_t, 2> ints{std::numeric_limits<std::int64_t>::min(), -1};
  const std::array<std::uint64_t, 1> words{std::numeric_limits<std::uint64_t>::max()};
  const std::array<std::uint8_t, 3> octets{0, 128, 255};
  const TensorView square{"näme \"quoted\"\n", "F32", {2, 1, 2}, std::as_bytes(std::span(floats))};
  const TensorView empty{"empty", "F32", {3, 0}, {}};
  const std::vector<TensorView> tensors{view_tensor("u8", octets),
                                        empty,
                                        square,
                                        view_tensor("f64", doubles),
                                        view_tensor("i64", ints),
                                        view_tensor("u64", words)};
  const TensorMetadata metadata{{"empty", ""}, {"text", "line\n\"quote\" ü"}};
  write_safetensors(folder / "f", tensors, metadata);
  const SafetensorsFile file(folder / "f");
  EXPECT_EQ(file.metadata(), metadata);
  ASSERT_EQ(file.tensors().size(), tensors.size());
  for (const TensorView& tensor : tensors) {
    const TensorView& got = file.at(tensor.name);
    EXPECT_EQ(got.dtype, tensor.dtype);
    EXPECT_EQ(got.shape, tensor.shape);
    EXPECT_EQ(bytes_text(got.data), bytes_text(tensor.data)) << tensor.name;
  }
}

TEST(Safetensors, FileWithoutTensorsIsAFile) {
  const ScratchFolder folder;
  write_safetensors(folder / "f", {});
  EXPECT_TRUE(SafetensorsFile(folder / "f").tensors().empty());
}

TEST(Safetensors, EveryTensorIsAlignedToItsElement) {
  const ScratchFolder folder;
  const std::array<std::uint8_t, 3> octets{1, 2, 3};
  const std::array<float, 3> floats{1, 2, 3};
  const std::array<double, 1> doubles{1};
  const std::vector<TensorView> tensors{view_tensor("a", octets), view_tensor("b", floats),
                                        view_tensor("c", doubles)};
  write_safetensors(folder / "f", tensors);
  const SafetensorsFile file(folder / "f");
  const auto address = [](const TensorView& tensor) {
    return reinterpret_cast<std::uintptr_t>(tensor.data.data());
  };
  EXPECT_EQ(address(file.tensors().front()) % 64, 0u);
  for (const TensorView& tensor : file.tensors()) {
    EXPECT_EQ(address(tensor) % tensor_dtype_bytes(tensor.dtype), 0u) << tensor.name;
  }
}

struct Fault {
  std::string header;
  std::string data;
  std::string says;
};

TEST(Safetensors, EveryFaultOfAHeaderIsNamed) {
  const ScratchFolder folder;
  const auto tensor = [](const std::string& dtype, const std::string& shape,
                         const std::string& offsets) {
    return R"({"dtype":")" + dtype + R"(","shape":)" + shape + R"(,"data_offsets":)" + offsets +
           "}";
  };
  const std::string half = tensor("F32", "[1]", "[0,4]");
  const std::vector<Fault> faults{
      {"", "", "does not begin with '{'"},
      {"[]", "", "does not begin with '{'"},
      {R"( {})", "", "does not begin with '{'"},
      {R"({"a":)", "", "not JSON"},
      {"{\"\xff\":1}", "", "not JSON"},
      {"{} x", "", "not JSON"},
      {R"({"a":[[[[[]]]]]})", "", "nested too deeply"},
      {R"({"a":1})", "", "tensor 'a' in the header: is not an object"},
      {R"({"a":)" + half + R"(,"a":)" + half + "}", "1234", "a key twice, got 'a'"},
      {R"({"a":{"dtype":"F32","dtype":"F64"}})", "", "a key twice, got 'dtype'"},
      {R"({"a":{"shape":[],"data_offsets":[0,4]}})", "1234", "has no dtype"},
      {R"({"a":{"dtype":"F32","data_offsets":[0,4]}})", "1234", "has no shape"},
      {R"({"a":{"dtype":"F32","shape":[]}})", "1234", "has no data_offsets"},
      {R"({"a":)" + tensor("F32", "[1]", "[0,4,8]") + "}", "1234", "has no data_offsets"},
      {R"({"a":)" + tensor("F32", "[-1]", "[0,4]") + "}", "1234", "has no shape"},
      {R"({"a":)" + tensor("F32", "[1.0]", "[0,4]") + "}", "1234", "has no shape"},
      {R"({"a":)" + tensor("F32", "[9223372036854775808]", "[0,4]") + "}", "1234", "has no shape"},
      {R"({"a":)" + tensor("F5", "[1]", "[0,4]") + "}", "1234", "dtype that this reader"},
      {R"({"a":)" + tensor("F32", "[2]", "[0,4]") + "}", "1234", "do not have the same size"},
      {R"({"a":)" + tensor("F32", "[1]", "[4,0]") + "}", "1234", "do not have the same size"},
      // 2^62 elements of 4 bytes wrap to 0 bytes.
      {R"({"a":)" + tensor("F32", "[4611686018427387904]", "[0,0]") + "}", "", "the same size"},
      {R"({"a":)" + tensor("F32", "[1]", "[0,4]") + R"(,"b":)" + tensor("F32", "[1]", "[0,4]") +
           "}",
       "1234", "tensor 'b' at byte 0 overlaps"},
      {R"({"a":)" + tensor("F32", "[1]", "[0,4]") + R"(,"b":)" + tensor("F32", "[1]", "[2,6]") +
           "}",
       "123456", "tensor 'b' at byte 2 overlaps"},
      {R"({"a":)" + tensor("F32", "[1]", "[2,6]") + "}", "123456", "leaves a hole"},
      {R"({"a":)" + half + "}", "123", "ends within the data of tensor 'a' at byte 0"},
      {R"({"a":)" + half + "}", "12345", "bytes are left after the last tensor, got 1"},
      {R"({"__metadata__":{"k":1}})", "", "'__metadata__'"},
      {R"({"__metadata__":"k"})", "", "'__metadata__'"},
  };
  for (const Fault& fault : faults) {
    put_file(folder / "f", file_text(fault.header, fault.data));
    const std::string message = message_of<IoError>([&] { SafetensorsFile file(folder / "f"); });
    EXPECT_TRUE(contains(message, fault.says)) << fault.header << "\n" << message;
    EXPECT_TRUE(contains(message, (folder / "f").native())) << message;
  }
}

TEST(Safetensors, AbsurdHeaderLengthsAreRefusedBeforeAnythingIsAllocated) {
  const ScratchFolder folder;
  const auto message_for = [&](std::uint64_t length) {
    put_file(folder / "f", raw(length) + "{}");
    return message_of<IoError>([&] { SafetensorsFile file(folder / "f"); });
  };
  for (int power : {27, 32, 62, 63}) {
    EXPECT_TRUE(contains(message_for(std::uint64_t{1} << power), "header length above")) << power;
  }
  EXPECT_TRUE(contains(message_for(~std::uint64_t{0}), "header length above"));
  EXPECT_TRUE(contains(message_for(100'000'000), "ends within the header"));
  EXPECT_TRUE(contains(message_for(3), "ends within the header, got 3 where 2 bytes"));
}

TEST(Safetensors, TruncationIsSeenAtEveryByte) {
  const ScratchFolder folder;
  const std::array<float, 3> values{1, 2, 3};
  write_safetensors(folder / "f", std::vector{view_tensor("a", values)});
  const std::string whole = get_file(folder / "f");
  for (std::size_t length = 0; length < whole.size(); ++length) {
    put_file(folder / "f", whole.substr(0, length));
    EXPECT_THROW(SafetensorsFile(folder / "f"), IoError) << length;
  }
}

TEST(Safetensors, WriterRefusesWhatCannotBeRead) {
  const ScratchFolder folder;
  const std::array<float, 2> values{1, 2};
  const auto data = std::as_bytes(std::span(values));
  const auto message_for = [&](std::vector<TensorView> tensors) {
    return message_of<std::invalid_argument>([&] { write_safetensors(folder / "f", tensors); });
  };
  EXPECT_TRUE(contains(message_for({{"a", "F32", {3}, data}}), "[3] x F32 for 8 bytes"));
  EXPECT_TRUE(contains(message_for({{"a", "F32", {-2}, data}}), "shape and data"));
  EXPECT_TRUE(contains(message_for({{"a", "FLOAT", {2}, data}}), "unknown dtype"));
  EXPECT_TRUE(contains(message_for({{"__metadata__", "F32", {2}, data}}), "reserved"));
  EXPECT_TRUE(contains(message_for({{"\xff", "F32", {2}, data}}), "UTF-8"));
  EXPECT_TRUE(
      contains(message_for({{"a", "F32", {2}, data}, {"a", "F32", {2}, data}}), "same name"));
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
}

TEST(Safetensors, CopyChecksTypeAndNumber) {
  const ScratchFolder folder;
  const std::array<float, 2> values{1, 2};
  write_safetensors(folder / "f", std::vector{view_tensor("weight", values)});
  const SafetensorsFile file(folder / "f");
  std::array<float, 2> out{};
  file.copy("weight", out);
  EXPECT_EQ(out, values);
  std::array<float, 3> longer{};
  std::array<double, 1> wider{};
  const auto number = message_of<IoError>([&] { file.copy("weight", longer); });
  const auto type = message_of<IoError>([&] { file.copy("weight", wider); });
  const auto name = message_of<IoError>([&] { file.copy("wieght", out); });
  EXPECT_TRUE(contains(number, "3 elements of F32 that are wanted, got [2] of F32")) << number;
  EXPECT_TRUE(contains(type, "1 elements of F64 that are wanted, got [2] of F32")) << type;
  EXPECT_TRUE(contains(name, "got 'wieght'; did you mean 'weight'?")) << name;
  EXPECT_EQ(file.find("wieght"), nullptr);
}

TEST(Safetensors, ViewsSurviveAMove) {
  const ScratchFolder folder;
  const std::array<float, 1> values{5};
  write_safetensors(folder / "f", std::vector{view_tensor("a", values)});
  SafetensorsFile file(folder / "f");
  const SafetensorsFile moved(std::move(file));
  EXPECT_EQ(bytes_text(moved.at("a").data), raw(5.0f));
}

}  // namespace
}  // namespace gossamer
