#include "gossamer/engine/manifest.h"

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <limits>
#include <span>
#include <utility>

#include "gossamer/base/errors.h"

namespace gossamer {
namespace {

constexpr std::string_view kFormat = "gossamer checkpoint";
constexpr int kVersion = 1;
constexpr std::uint64_t kMaxManifestBytes = 16'000'000;  // of kMostWorkers files
constexpr std::string_view kStepPrefix = "step-";
constexpr std::size_t kStepDigits = 8;

std::string hex(std::uint32_t value) {
  char text[9];
  std::snprintf(text, sizeof text, "%08x", value);
  return text;
}

std::optional<std::uint32_t> parse_hex(const std::string& text) {
  std::uint32_t value = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value, 16);
  if (text.size() != 8 || error != std::errc() || stop != end) return std::nullopt;
  return value;
}

/// The last line of the file: the checksum of everything before it.
std::string seal(std::string_view body) {
  const auto bytes = std::as_bytes(std::span(body.data(), body.size()));
  return "  \"checksum\": \"" + hex(crc32_of(bytes)) + "\"\n}\n";
}

[[noreturn]] void fail_manifest(const std::filesystem::path& path, const std::string& what,
                                std::string got = {}) {
  fail_io({.place = path.native(),
           .what = what,
           .got = std::move(got),
           .remedy = "use another checkpoint"});
}

void check_version(const std::filesystem::path& path, const Json& json) {
  if (!json.is_object() || json.value("format", Json()) != Json(kFormat)) {
    fail_manifest(path, "is not the manifest of a Gossamer checkpoint");
  }
  const Json version = json.value("version", Json());
  if (version == Json(kVersion)) return;
  fail_io({.place = path.native(),
           .what = "is of a version that this program does not read (it reads " +
                   std::to_string(kVersion) + ")",
           .got = version.dump(),
           .remedy = "use the Gossamer that wrote it, or another checkpoint"});
}

void check_seal(const std::filesystem::path& path, std::string_view text) {
  const std::size_t length = seal({}).size();
  const std::size_t body = text.size() < length ? 0 : text.size() - length;
  if (text.substr(body) == seal(text.substr(0, body))) return;
  fail_manifest(path, "is altered: its checksum is not that of its text");
}

template <class T>
T integer(const std::filesystem::path& path, const Json& json, const char* key) {
  const Json& value = json.at(key);
  if (value.is_number_unsigned() && std::in_range<T>(value.get<std::uint64_t>())) {
    return value.get<T>();
  }
  fail_manifest(path, std::string(key) + " is not a whole number in its range", value.dump());
}

WorkerFile parse_file(const std::filesystem::path& path, const Json& json) {
  const auto crc32 = parse_hex(json.at("crc32").get<std::string>());
  if (!crc32) fail_manifest(path, "crc32 is not 8 hexadecimal digits", json.at("crc32").dump());
  return {integer<int>(path, json, "rank"), json.at("name").get<std::string>(),
          integer<std::uint64_t>(path, json, "bytes"), *crc32};
}

Manifest parse_fields(const std::filesystem::path& path, const Json& json) {
  Manifest manifest;
  manifest.step = integer<std::int64_t>(path, json, "step");
  manifest.workers = integer<int>(path, json, "workers");
  for (const Json& file : json.at("files")) manifest.files.push_back(parse_file(path, file));
  manifest.seed = integer<std::uint64_t>(path, json, "seed");
  manifest.run = json.at("run");
  manifest.created = json.at("created").get<std::string>();
  return manifest;
}

}  // namespace

std::string checkpoint_name(std::int64_t step) {
  if (step < 0) {
    fail_argument({"checkpoint", "a step must be at least 0", std::to_string(step)});
  }
  char text[40];
  std::snprintf(text, sizeof text, "step-%0*lld", int{kStepDigits}, static_cast<long long>(step));
  return text;
}

std::optional<std::int64_t> checkpoint_step(std::string_view name) {
  if (!name.starts_with(kStepPrefix)) return std::nullopt;
  const std::string_view digits = name.substr(kStepPrefix.size());
  std::int64_t step = 0;
  const auto [stop, error] = std::from_chars(digits.data(), digits.data() + digits.size(), step);
  if (error != std::errc() || stop != digits.data() + digits.size() || step < 0) {
    return std::nullopt;
  }
  if (checkpoint_name(step) != name) return std::nullopt;
  return step;
}

std::string worker_file_name(int rank) {
  if (rank < 0) fail_argument({"checkpoint", "a rank must be at least 0", std::to_string(rank)});
  char text[40];
  std::snprintf(text, sizeof text, "worker-%05d.safetensors", rank);
  return text;
}

void check_manifest(const Manifest& manifest) {
  checkpoint_name(manifest.step);
  if (manifest.workers < 1 || manifest.files.size() != static_cast<std::size_t>(manifest.workers)) {
    fail_argument({"checkpoint", "a manifest must name one file for each worker",
                   std::to_string(manifest.files.size()) + " files for " +
                       std::to_string(manifest.workers) + " workers",
                   "gather what write_worker_file() returned on every worker"});
  }
  for (int rank = 0; rank < manifest.workers; ++rank) {
    const WorkerFile& file = manifest.files[static_cast<std::size_t>(rank)];
    if (file.rank == rank && file.name == worker_file_name(rank)) continue;
    fail_argument({"checkpoint", "the files of a manifest must be in the order of the ranks",
                   "'" + file.name + "' of worker " + std::to_string(file.rank) + " at place " +
                       std::to_string(rank),
                   "sort them by rank, one for each"});
  }
}

std::string manifest_text(const Manifest& manifest) {
  Json files = Json::array();
  for (const WorkerFile& file : manifest.files) {
    files.push_back({{"rank", file.rank},
                     {"name", file.name},
                     {"bytes", file.bytes},
                     {"crc32", hex(file.crc32)}});
  }
  const Json json = {{"format", kFormat},           {"version", kVersion},
                     {"step", manifest.step},       {"created", manifest.created},
                     {"workers", manifest.workers}, {"seed", manifest.seed},
                     {"run", manifest.run},         {"files", files}};
  std::string text;
  try {
    text = json.dump(2);
  } catch (const Json::exception&) {
    fail_argument({"checkpoint", "a text in the manifest's run is not UTF-8", {}, "encode it"});
  }
  text.resize(text.size() - 2);  // "\n}" makes room for one more key
  text += ",\n";
  return text + seal(text);
}

Manifest read_manifest(const std::filesystem::path& checkpoint) {
  const std::filesystem::path path = checkpoint / kManifestName;
  std::error_code ignored;
  if (!std::filesystem::exists(path, ignored)) {
    fail_manifest(path, "is missing: the checkpoint is not complete");
  }
  const FileBytes bytes = read_file(path, kMaxManifestBytes);
  const std::string_view text(reinterpret_cast<const char*>(bytes.memory.get()), bytes.size);
  try {
    check_seal(path, text);
    const Json json = parse_json(text);
    check_version(path, json);
    Manifest manifest = parse_fields(path, json);
    check_manifest(manifest);
    if (checkpoint.filename() != checkpoint_name(manifest.step) &&
        checkpoint_step(checkpoint.filename().native())) {
      fail_manifest(path, "is of another step than its folder", std::to_string(manifest.step));
    }
    return manifest;
  } catch (const Json::exception& fault) {
    fail_manifest(path, std::string("is truncated or altered: ") + fault.what());
  } catch (const std::invalid_argument& fault) {
    fail_manifest(path, std::string("does not describe a checkpoint: ") + fault.what());
  }
}

void require_same_run(const Manifest& manifest, const Json& run) {
  std::string differences;
  for (const auto& [key, value] : run.items()) {
    const auto found = manifest.run.find(key);
    if (found != manifest.run.end() && *found == value) continue;
    differences += (differences.empty() ? "" : ", ") + key + " = " + value.dump() +
                   " where it was " + (found == manifest.run.end() ? "absent" : found->dump());
  }
  if (differences.empty()) return;
  fail_argument({"checkpoint " + checkpoint_name(manifest.step),
                 "this run is not the one that was saved", differences,
                 "give the values of the saved run or start a new one in another folder"});
}

}  // namespace gossamer
