#include "gossamer/checkpoint/manifest.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <limits>
#include <span>
#include <utility>

#include "gossamer/base/errors.h"

namespace gossamer {
namespace {

constexpr std::string_view kFormat = "gossamer checkpoint";
constexpr int kVersion = 2;
constexpr std::uint64_t kMaxManifestBytes = 32'000'000;  // kMostWorkers files, 200,000 tensors
/// How a checkpoint of gossip.save began, before there was one format.
constexpr std::string_view kFirstOfPython = "{\n \"format\": \"gossip checkpoint\",";
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

/// Where a manifest is, and what to do where it is not sound.
struct Source {
  const std::filesystem::path& path;
  const std::string& remedy;
};

[[noreturn]] void fail_manifest(const Source& source, const std::string& what,
                                std::string got = {}) {
  fail_io({.place = source.path.native(),
           .what = what,
           .got = std::move(got),
           .remedy = source.remedy});
}

[[noreturn]] void fail_version(const Source& source, std::string got, std::string remedy) {
  fail_io({.place = source.path.native(),
           .what = "is of a version that this program does not read (it reads " +
                   std::to_string(kVersion) + ")",
           .got = std::move(got),
           .remedy = std::move(remedy)});
}

void check_version(const Source& source, const Json& json) {
  if (!json.is_object() || json.value("format", Json()) != Json(kFormat)) {
    fail_manifest(source, "is not the manifest of a Gossamer checkpoint");
  }
  const Json version = json.value("version", Json());
  if (version == Json(kVersion)) return;
  fail_version(source, version.dump(),
               version == Json(1) ? "finish the run with the gossamer that wrote it, or start "
                                    "another one from its model.safetensors"
                                  : "use the gossamer that wrote it, or another checkpoint");
}

void check_seal(const Source& source, std::string_view text) {
  const std::size_t length = seal({}).size();
  const std::size_t body = text.size() < length ? 0 : text.size() - length;
  if (text.substr(body) == seal(text.substr(0, body))) return;
  fail_manifest(source, "is altered: its checksum is not that of its text");
}

template <class T>
T integer(const Source& source, const Json& json, const char* key) {
  const Json& value = json.at(key);
  if (value.is_number_unsigned() && std::in_range<T>(value.get<std::uint64_t>())) {
    return value.get<T>();
  }
  fail_manifest(source, std::string(key) + " is not a whole number in its range", value.dump());
}

WorkerFile parse_file(const Source& source, const Json& json) {
  const auto crc32 = parse_hex(json.at("crc32").get<std::string>());
  if (!crc32) fail_manifest(source, "crc32 is not 8 hexadecimal digits", json.at("crc32").dump());
  return {.rank = integer<int>(source, json, "rank"),
          .member = integer<int>(source, json, "member"),
          .name = json.at("name").get<std::string>(),
          .bytes = integer<std::uint64_t>(source, json, "bytes"),
          .crc32 = *crc32};
}

SavedLoss parse_loss(const Source& source, const Json& json) {
  const bool is_pair = json.is_array() && json.size() == 2 && json[0].is_number_integer() &&
                       (json[1].is_number() || json[1].is_null());
  if (!is_pair) fail_manifest(source, "a loss is not a step and a number", json.dump());
  return {json[0].get<std::int64_t>(),
          json[1].is_null() ? std::numeric_limits<double>::quiet_NaN() : json[1].get<double>()};
}

Manifest parse_fields(const Source& source, const Json& json) {
  Manifest manifest;
  manifest.step = integer<std::int64_t>(source, json, "step");
  manifest.created = json.at("created").get<std::string>();
  manifest.workers = integer<int>(source, json, "workers");
  manifest.epoch = integer<std::int64_t>(source, json, "epoch");
  manifest.optimizer = json.at("optimizer").get<std::string>();
  manifest.pattern = json.at("pattern").get<std::string>();
  manifest.model = json.at("model").get<std::vector<std::string>>();
  manifest.groups = integer<int>(source, json, "groups");
  for (const Json& loss : json.at("losses")) manifest.losses.push_back(parse_loss(source, loss));
  manifest.run = json.at("run");
  if (!manifest.run.is_object()) fail_manifest(source, "run is not an object");
  for (const Json& file : json.at("files")) manifest.files.push_back(parse_file(source, file));
  return manifest;
}

Manifest parse(const Source& source, const std::filesystem::path& checkpoint,
               std::string_view text) {
  check_seal(source, text);
  const Json json = parse_json(text);
  check_version(source, json);
  Manifest manifest = parse_fields(source, json);
  check_manifest(manifest);
  if (checkpoint.filename() != checkpoint_name(manifest.step) &&
      checkpoint_step(checkpoint.filename().native())) {
    fail_manifest(source, "is of another step than its folder", std::to_string(manifest.step));
  }
  return manifest;
}

/// The text without its last line.
std::string body_of(const Manifest& manifest) {
  Json files = Json::array();
  for (const WorkerFile& file : manifest.files) {
    files.push_back({{"rank", file.rank},
                     {"member", file.member},
                     {"name", file.name},
                     {"bytes", file.bytes},
                     {"crc32", hex(file.crc32)}});
  }
  Json losses = Json::array();
  for (const SavedLoss& each : manifest.losses) {
    losses.push_back(Json::array({each.step, finite_json(each.loss)}));
  }
  const Json json = {{"format", kFormat},
                     {"version", kVersion},
                     {"step", manifest.step},
                     {"created", manifest.created},
                     {"workers", manifest.workers},
                     {"epoch", manifest.epoch},
                     {"optimizer", manifest.optimizer},
                     {"pattern", manifest.pattern},
                     {"model", manifest.model},
                     {"groups", manifest.groups},
                     {"losses", losses},
                     {"run", manifest.run},
                     {"files", files}};
  std::string text;
  try {
    text = json.dump(2);
  } catch (const Json::exception&) {
    fail_argument({"checkpoint", "a text in the manifest is not UTF-8", {}, "encode it"});
  }
  text.resize(text.size() - 2);  // "\n}" makes room for one more key
  return text + ",\n";
}

/// One word for the optimizers that read each other's state: rows of the table and classes of
/// torch, with and without momentum.
std::string family_of(std::string_view optimizer) {
  std::string family;
  for (const char c : optimizer) {
    if (c != '_') family += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  return family == "momentum" ? "sgd" : family;
}

/// What is the same of a line for every shape and dtype: "parameter 'NAME'".
std::string_view name_of_line(std::string_view line) { return line.substr(0, line.rfind('\'')); }

[[noreturn]] void fail_model(const Manifest& manifest, const std::string& saved, std::string here) {
  fail_argument({.place = "checkpoint " + checkpoint_name(manifest.step),
                 .what = "is of another model or optimizer: it has " + saved,
                 .got = std::move(here),
                 .remedy = "build what it was saved from, or load a checkpoint of this"});
}

/// The line about the same tensor; "nothing" where there is none.
std::string line_like(std::string_view line, std::span<const std::string> lines) {
  const auto found = std::ranges::find(lines, name_of_line(line), name_of_line);
  return found == lines.end() ? "nothing" : *found;
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

WorkerFile worker_file(int rank, const FileDigest& digest) {
  return {rank, rank, worker_file_name(rank), digest.bytes, digest.crc32};
}

bool SavedLoss::operator==(const SavedLoss& other) const {
  return step == other.step && (loss == other.loss || (std::isnan(loss) && std::isnan(other.loss)));
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
  const std::string body = body_of(manifest);
  std::string text = body + seal(body);
  if (text.size() <= kMaxManifestBytes) return text;
  fail_argument(
      {"checkpoint", "the manifest is longer than readers accept",
       std::to_string(text.size()) + " of at most " + std::to_string(kMaxManifestBytes) + " bytes",
       "save a model of fewer tensors"});
}

std::uint32_t manifest_checksum(const Manifest& manifest) {
  const std::string body = body_of(manifest);
  return crc32_of(std::as_bytes(std::span(body)));
}

Manifest read_manifest(const std::filesystem::path& checkpoint, const std::string& remedy) {
  const std::filesystem::path path = checkpoint / kManifestName;
  const Source source{path, remedy};
  std::error_code ignored;
  if (!std::filesystem::exists(path, ignored)) {
    fail_manifest(source, "is missing: the checkpoint is not complete");
  }
  const FileBytes bytes = read_file(path, kMaxManifestBytes);
  const std::string_view text(reinterpret_cast<const char*>(bytes.memory.get()), bytes.size);
  if (text.starts_with(kFirstOfPython)) {
    fail_version(source, "1 of gossip.save",
                 "convert it: python -m gossamer.checkpoint.convert OLD NEW");
  }
  try {
    return parse(source, checkpoint, text);
  } catch (const Json::exception& fault) {
    fail_manifest(source, std::string("is truncated or altered: ") + fault.what());
  } catch (const std::invalid_argument& fault) {
    fail_manifest(source, std::string("does not describe a checkpoint: ") + fault.what());
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

void require_same_model(const Manifest& manifest, std::string_view optimizer,
                        std::span<const std::string> model) {
  if (family_of(manifest.optimizer) != family_of(optimizer)) {
    fail_model(manifest, "optimizer " + manifest.optimizer,
               std::string("optimizer ").append(optimizer));
  }
  std::vector<std::string> saved = manifest.model;
  std::vector<std::string> here(model.begin(), model.end());
  std::ranges::sort(saved);
  std::ranges::sort(here);
  if (saved == here) return;
  for (const std::string& line : manifest.model) {
    if (!std::ranges::binary_search(here, line)) fail_model(manifest, line, line_like(line, here));
  }
  for (const std::string& line : model) {
    if (!std::ranges::binary_search(saved, line)) fail_model(manifest, "nothing", line);
  }
  fail_model(manifest, "a tensor twice", "it once");
}

}  // namespace gossamer
