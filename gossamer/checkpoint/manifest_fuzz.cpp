// manifest.json and `latest` of a folder of checkpoints, whatever is in them.

#include <cstdio>

#include "gossamer/base/fuzz.h"
#include "gossamer/base/scratch_folder.h"
#include "gossamer/checkpoint/folder.h"
#include "gossamer/checkpoint/load.h"
#include "gossamer/checkpoint/manifest.h"

namespace gossamer {
namespace manifest_fuzz {

/// With the last line that belongs to it.
std::string with_checksum(std::string text) {
  char digits[9];
  const std::uint32_t code = crc32_of(std::as_bytes(std::span(text)));
  std::snprintf(digits, sizeof digits, "%08x", code);
  return text + "  \"checksum\": \"" + digits + "\"\n}\n";
}

void write_again(const ScratchFolder& folder, const Manifest& manifest) {
  const std::filesystem::path another = folder.path() / "another";
  std::filesystem::create_directory(another);
  folder.put("another/manifest.json", manifest_text(manifest));
  fuzz_check(read_manifest(another) == manifest, "it is another one after writing and reading");
  fuzz_check(manifest_checksum(read_manifest(another)) == manifest_checksum(manifest),
             "it has another checksum after writing and reading");
  require_same_run(manifest, manifest.run);
  require_same_model(manifest, manifest.optimizer, manifest.model);
}

bool try_latest(const ScratchFolder& folder, std::string_view text) {
  folder.put("latest", text);
  const auto found = latest_checkpoint(folder.path());
  if (!found) return false;
  fuzz_check(found->parent_path() == folder.path(), "`latest` leads out of the folder");
  return true;
}

}  // namespace manifest_fuzz

bool fuzz_manifest(std::span<const std::byte> bytes) {
  using namespace manifest_fuzz;
  FuzzBytes input(bytes);
  const unsigned mode = input.take<std::uint8_t>();
  const ScratchFolder folder;
  const std::filesystem::path checkpoint =
      folder.path() / ((mode & 1U) != 0 ? "step-00000003" : "checkpoint");
  std::filesystem::create_directory(checkpoint);
  std::string text(input.text());
  bool is_right = false;
  return takes([&] {
           if ((mode & 2U) != 0) is_right = try_latest(folder, text);
           if ((mode & 4U) != 0) text = with_checksum(text);
           folder.put(checkpoint.filename() / kManifestName, text);
           write_again(folder, read_manifest(checkpoint));
           if (mode == 7U) verify_checkpoint(checkpoint);
           is_right = true;
         }) &&
         is_right;
}

}  // namespace gossamer
