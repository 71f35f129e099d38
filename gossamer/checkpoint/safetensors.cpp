#include "gossamer/checkpoint/safetensors.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <limits>
#include <numeric>
#include <optional>
#include <set>
#include <tuple>

#include "gossamer/base/errors.h"
#include "gossamer/base/json.h"

namespace gossamer {
namespace {

static_assert(std::endian::native == std::endian::little, "tensor data are little-endian");

constexpr std::uint64_t kMaxHeaderBytes = 100'000'000;  // the limit of the reference implementation
constexpr std::size_t kLengthBytes = 8;
constexpr std::size_t kDataAlignment = 64;
constexpr std::string_view kMetadataKey = "__metadata__";

struct DTypeRow {
  std::string_view name;
  std::size_t bytes;
};
constexpr std::array kDTypes{
    DTypeRow{"F32", 4},     DTypeRow{"F64", 8},     DTypeRow{"I64", 8}, DTypeRow{"U64", 8},
    DTypeRow{"U8", 1},      DTypeRow{"I8", 1},      DTypeRow{"I16", 2}, DTypeRow{"U16", 2},
    DTypeRow{"I32", 4},     DTypeRow{"U32", 4},     DTypeRow{"F16", 2}, DTypeRow{"BF16", 2},
    DTypeRow{"F8_E4M3", 1}, DTypeRow{"F8_E5M2", 1}, DTypeRow{"C64", 8}, DTypeRow{"BOOL", 1},
};

/// shape × element; nothing when a dimension is negative or the product passes 2^64.
std::optional<std::uint64_t> bytes_of(std::span<const std::int64_t> shape, std::size_t element) {
  std::uint64_t bytes = element;
  for (std::int64_t dimension : shape) {
    if (dimension < 0) return std::nullopt;
    if (__builtin_mul_overflow(bytes, static_cast<std::uint64_t>(dimension), &bytes)) {
      return std::nullopt;
    }
  }
  return bytes;
}

std::string to_text(std::span<const std::int64_t> shape) {
  std::string text = "[";
  for (std::int64_t dimension : shape) {
    if (text.size() > 1) text += ",";
    text += std::to_string(dimension);
  }
  return text + "]";
}

// ---- writing ----

void check_tensor(const std::string& place, const TensorView& tensor) {
  const std::string where = "tensor '" + tensor.name + "'";
  if (tensor.name == kMetadataKey) {
    fail_argument({place, where + ": this name is reserved", {}, "choose another name"});
  }
  const std::size_t element = tensor_dtype_bytes(tensor.dtype);
  if (element == 0) {
    fail_argument({place, where + ": unknown dtype", "'" + tensor.dtype + "'",
                   "use a word of the format such as F32, F64, I64, U64, U8"});
  }
  const auto bytes = bytes_of(tensor.shape, element);
  if (!bytes || *bytes != tensor.data.size()) {
    fail_argument({place, where + ": shape and data do not have the same size",
                   to_text(tensor.shape) + " x " + tensor.dtype + " for " +
                       std::to_string(tensor.data.size()) + " bytes",
                   "give the shape of the data"});
  }
}

/// Indices of the tensors as they lie in the file: wider elements first.
std::vector<std::size_t> order_in_file(std::span<const TensorView> tensors) {
  std::vector<std::size_t> order(tensors.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return tensor_dtype_bytes(tensors[a].dtype) > tensor_dtype_bytes(tensors[b].dtype);
  });
  return order;
}

std::string header_text(std::span<const TensorView> tensors, std::span<const std::size_t> order,
                        const TensorMetadata& metadata) {
  std::string text = "{";
  if (!metadata.empty()) {
    text += Json(kMetadataKey).dump() + ":" + nlohmann::json(metadata).dump();
  }
  std::uint64_t begin = 0;
  for (std::size_t i : order) {
    const TensorView& tensor = tensors[i];
    const std::uint64_t end = begin + tensor.data.size();
    if (text.size() > 1) text += ",";
    text += Json(tensor.name).dump() + R"(:{"dtype":")" + tensor.dtype + R"(","shape":)" +
            to_text(tensor.shape) + R"(,"data_offsets":[)" + std::to_string(begin) + "," +
            std::to_string(end) + "]}";
    begin = end;
  }
  text += "}";
  const std::size_t past = (kLengthBytes + text.size()) % kDataAlignment;
  if (past != 0) text.append(kDataAlignment - past, ' ');
  return text;
}

std::string checked_header(const std::string& place, std::span<const TensorView> tensors,
                           std::span<const std::size_t> order, const TensorMetadata& metadata) {
  std::string header;
  try {
    header = header_text(tensors, order, metadata);
  } catch (const nlohmann::json::exception&) {
    fail_argument({place, "a tensor name or a metadata text is not UTF-8", {}, "encode it"});
  }
  if (header.size() > kMaxHeaderBytes) {
    fail_argument({place, "the header is longer than readers accept",
                   std::to_string(header.size()) + " of at most " +
                       std::to_string(kMaxHeaderBytes) + " bytes",
                   "write fewer tensors or shorter metadata"});
  }
  return header;
}

// ---- reading ----

/// One tensor as the header tells it, not yet believed.
struct HeaderEntry {
  std::string name;
  std::string dtype;
  std::vector<std::int64_t> shape;
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
};

[[noreturn]] void fail_format(const std::filesystem::path& path, const std::string& what,
                              std::string got = {}) {
  fail_io({.place = path.native(),
           .what = what,
           .got = std::move(got),
           .remedy = "the file is truncated, altered or not safetensors: use another copy"});
}

std::string of_file(std::uint64_t got, std::uint64_t present) {
  return std::to_string(got) + " where " + std::to_string(present) + " bytes are present";
}

std::uint64_t header_length(const std::filesystem::path& path, std::span<const std::byte> file) {
  if (file.size() < kLengthBytes) {
    fail_format(path, "the file ends within the header length (8 bytes)",
                std::to_string(file.size()) + " bytes");
  }
  std::uint64_t length = 0;
  std::memcpy(&length, file.data(), sizeof length);
  if (length > kMaxHeaderBytes) {
    fail_format(path, "header length above " + std::to_string(kMaxHeaderBytes),
                std::to_string(length));
  }
  if (length > file.size() - kLengthBytes) {
    fail_format(path, "the file ends within the header",
                of_file(length, file.size() - kLengthBytes));
  }
  return length;
}

/// Parses the header; refuses what the JSON library would let pass: equal keys and deep nesting.
nlohmann::json parse_header(const std::filesystem::path& path, std::string_view text) {
  if (text.empty() || text.front() != '{') fail_format(path, "the header does not begin with '{'");
  std::vector<std::set<std::string>> keys;
  const auto check = [&](int depth, nlohmann::json::parse_event_t event, nlohmann::json& value) {
    using Event = nlohmann::json::parse_event_t;
    if (depth > 3) fail_format(path, "the header is nested too deeply");
    if (event == Event::object_start) keys.emplace_back();
    if (event == Event::object_end) keys.pop_back();
    if (event == Event::key && !keys.back().insert(value.get<std::string>()).second) {
      fail_format(path, "the header has a key twice", "'" + value.get<std::string>() + "'");
    }
    return true;
  };
  try {
    return nlohmann::json::parse(text, check);
  } catch (const nlohmann::json::exception& error) {
    fail_format(path, std::string("the header is not JSON: ") + error.what());
  }
}

TensorMetadata parse_metadata(const std::filesystem::path& path, const nlohmann::json& value) {
  const auto is_text = [](const nlohmann::json& item) { return item.is_string(); };
  if (!value.is_object() || !std::all_of(value.begin(), value.end(), is_text)) {
    fail_format(path, "'__metadata__' in the header is not an object of texts");
  }
  return value.get<TensorMetadata>();
}

bool is_count(const nlohmann::json& value) {
  constexpr auto kMax = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
  return value.is_number_unsigned() && value.get<std::uint64_t>() <= kMax;
}

bool are_counts(const nlohmann::json& info, const char* key) {
  const auto found = info.find(key);
  return found != info.end() && found->is_array() &&
         std::all_of(found->begin(), found->end(), is_count);
}

HeaderEntry parse_entry(const std::filesystem::path& path, const std::string& name,
                        const nlohmann::json& info) {
  const std::string where = "tensor '" + name + "' in the header: ";
  if (!info.is_object()) fail_format(path, where + "is not an object");
  const auto dtype = info.find("dtype");
  if (dtype == info.end() || !dtype->is_string()) fail_format(path, where + "has no dtype");
  if (!are_counts(info, "shape")) fail_format(path, where + "has no shape of whole numbers >= 0");
  if (!are_counts(info, "data_offsets") || info["data_offsets"].size() != 2) {
    fail_format(path, where + "has no data_offsets of two whole numbers >= 0");
  }
  HeaderEntry entry{name, *dtype, info["shape"], info["data_offsets"][0], info["data_offsets"][1]};
  const std::size_t element = tensor_dtype_bytes(entry.dtype);
  if (element == 0) {
    fail_io({path.native(), where + "has a dtype that this reader does not know",
             "'" + entry.dtype + "'", "convert it, for example to F32"});
  }
  const auto bytes = bytes_of(entry.shape, element);
  if (entry.begin > entry.end || !bytes || *bytes != entry.end - entry.begin) {
    fail_format(path, where + "shape and data_offsets do not have the same size",
                to_text(entry.shape) + " x " + entry.dtype + " for bytes " +
                    std::to_string(entry.begin) + " to " + std::to_string(entry.end));
  }
  return entry;
}

/// The format has neither holes nor overlaps: each tensor begins where the one before ends.
void check_cover(const std::filesystem::path& path, std::span<const HeaderEntry> entries,
                 std::uint64_t data_bytes) {
  std::uint64_t covered = 0;
  for (const HeaderEntry& entry : entries) {
    const std::string where = "tensor '" + entry.name + "' at byte " + std::to_string(entry.begin);
    if (entry.end > data_bytes) {
      fail_format(path, "the file ends within the data of " + where,
                  of_file(entry.end, data_bytes));
    }
    if (entry.begin < covered) fail_format(path, where + " overlaps the tensor before it");
    if (entry.begin > covered) fail_format(path, where + " leaves a hole before it");
    covered = entry.end;
  }
  if (covered != data_bytes) {
    fail_format(path, "bytes are left after the last tensor", std::to_string(data_bytes - covered));
  }
}

}  // namespace

std::size_t tensor_dtype_bytes(std::string_view dtype) {
  const auto row = std::find_if(kDTypes.begin(), kDTypes.end(),
                                [&](const DTypeRow& candidate) { return candidate.name == dtype; });
  return row == kDTypes.end() ? 0 : row->bytes;
}

FileDigest write_safetensors(const std::filesystem::path& path, std::span<const TensorView> tensors,
                             const TensorMetadata& metadata) {
  const std::string& place = path.native();
  std::set<std::string_view> names;
  for (const TensorView& tensor : tensors) {
    check_tensor(place, tensor);
    if (!names.insert(tensor.name).second) {
      fail_argument(
          {place, "two tensors have the same name", "'" + tensor.name + "'", "give each its own"});
    }
  }
  const std::vector<std::size_t> order = order_in_file(tensors);
  const std::string header = checked_header(place, tensors, order, metadata);
  const std::uint64_t length = header.size();
  NewFile file(path);
  file.write(std::as_bytes(std::span(&length, 1)));
  file.write(header);
  for (std::size_t i : order) file.write(tensors[i].data);
  return file.publish();
}

SafetensorsFile::SafetensorsFile(std::filesystem::path path)
    : SafetensorsFile(path, read_file(path)) {}

SafetensorsFile::SafetensorsFile(std::filesystem::path path, FileBytes bytes)
    : path_(std::move(path)), bytes_(std::move(bytes)) {
  const std::span<const std::byte> file = bytes_.span();
  const std::uint64_t length = header_length(path_, file);
  const auto header = file.subspan(kLengthBytes, length);
  const auto data = file.subspan(kLengthBytes + length);
  const nlohmann::json json =
      parse_header(path_, {reinterpret_cast<const char*>(header.data()), header.size()});
  std::vector<HeaderEntry> entries;
  for (const auto& [name, info] : json.items()) {
    if (name == kMetadataKey) {
      metadata_ = parse_metadata(path_, info);
    } else {
      entries.push_back(parse_entry(path_, name, info));
    }
  }
  std::sort(entries.begin(), entries.end(), [](const HeaderEntry& a, const HeaderEntry& b) {
    return std::tie(a.begin, a.end, a.name) < std::tie(b.begin, b.end, b.name);
  });
  check_cover(path_, entries, data.size());
  for (HeaderEntry& entry : entries) {
    index_.emplace(entry.name, tensors_.size());
    tensors_.push_back({std::move(entry.name), std::move(entry.dtype), std::move(entry.shape),
                        data.subspan(entry.begin, entry.end - entry.begin)});
  }
}

const TensorView* SafetensorsFile::find(std::string_view name) const {
  const auto found = index_.find(name);
  return found == index_.end() ? nullptr : &tensors_[found->second];
}

const TensorView& SafetensorsFile::at(std::string_view name) const {
  if (const TensorView* tensor = find(name)) return *tensor;
  std::vector<std::string_view> names;
  for (const TensorView& tensor : tensors_) names.push_back(tensor.name);
  const std::string nearest = nearest_name(name, names);
  fail_io({.place = path_.native(),
           .what = "has no such tensor",
           .got = std::string("'").append(name).append("'"),
           .remedy = nearest.empty() ? "the file has " + std::to_string(names.size()) + " others"
                                     : "did you mean '" + nearest + "'?"});
}

void SafetensorsFile::copy_bytes(std::string_view name, std::string_view dtype,
                                 std::span<std::byte> out) const {
  const TensorView& tensor = at(name);
  if (tensor.dtype != dtype || tensor.data.size() != out.size()) {
    const std::size_t count = out.size() / tensor_dtype_bytes(dtype);
    fail_io({.place = path_.native(),
             .what = "tensor '" + tensor.name + "' is not the " + std::to_string(count) +
                     " elements of " + std::string(dtype) + " that are wanted",
             .got = to_text(tensor.shape) + " of " + tensor.dtype,
             .remedy = "use a file of the same model and optimizer"});
  }
  if (!out.empty()) std::memcpy(out.data(), tensor.data.data(), out.size());
}

}  // namespace gossamer
