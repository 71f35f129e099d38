#include "gossamer/engine/manifest.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <limits>
#include <span>

#include "gossamer/base/test_folder.h"

namespace gossamer {
namespace {

Manifest small_manifest() {
  Manifest manifest;
  manifest.step = 120;
  manifest.workers = 2;
  manifest.files = {{0, "worker-00000.safetensors", 640, 0x0000abcdu},
                    {1, "worker-00001.safetensors", std::uint64_t{1} << 40, 0xffffffffu}};
  manifest.seed = std::numeric_limits<std::uint64_t>::max();
  manifest.run = {{"topology", "ring"}, {"lr", 0.1}};
  manifest.created = "2025-01-31T12:00:00Z";
  return manifest;
}

/// A folder of the right name with `text` as its manifest.
std::filesystem::path put_manifest(const TestFolder& folder, const std::string& text) {
  std::filesystem::create_directories(folder / "step-00000120");
  put_file(folder / "step-00000120" / "manifest.json", text);
  return folder / "step-00000120";
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const std::size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

/// The text with the checksum it would have had if it had been written so.
std::string sealed(const std::string& text) {
  const std::size_t end = text.rfind("  \"checksum\"");
  char line[64];
  std::snprintf(line, sizeof line, "  \"checksum\": \"%08x\"\n}\n",
                crc32_of(std::as_bytes(std::span(text.data(), end))));
  return text.substr(0, end) + line;
}

TEST(CheckpointNames, HaveEightDigitsOrMore) {
  EXPECT_EQ(checkpoint_name(120), "step-00000120");
  EXPECT_EQ(checkpoint_name(1'234'567'890), "step-1234567890");
  EXPECT_EQ(worker_file_name(3), "worker-00003.safetensors");
  EXPECT_THROW(checkpoint_name(-1), std::invalid_argument);
  EXPECT_THROW(worker_file_name(-1), std::invalid_argument);
}

TEST(CheckpointNames, ReadBackOnlyWhatWasWritten) {
  for (std::int64_t step : {std::int64_t{0}, std::int64_t{99'999'999}, std::int64_t{100'000'000},
                            std::numeric_limits<std::int64_t>::max()}) {
    EXPECT_EQ(checkpoint_step(checkpoint_name(step)), step);
  }
  for (const char* name :
       {"", "step-", "step-120", "step-000000120", "step--0000120", "step-0000012x",
        "step-00000120.tmp-a", "../step-00000120", "step-99999999999999999999"}) {
    EXPECT_EQ(checkpoint_step(name), std::nullopt) << name;
  }
}

TEST(ManifestFile, RoundTripKeepsEverything) {
  const TestFolder folder;
  EXPECT_EQ(read_manifest(put_manifest(folder, manifest_text(small_manifest()))), small_manifest());
}

TEST(ManifestFile, IsJsonWithTheDocumentedKeys) {
  const Json json = Json::parse(manifest_text(small_manifest()));
  EXPECT_EQ(json["format"], "gossamer checkpoint");
  EXPECT_EQ(json["version"], 1);
  EXPECT_EQ(json["files"][0]["crc32"], "0000abcd");
  EXPECT_EQ(json["seed"], std::numeric_limits<std::uint64_t>::max());
}

TEST(ManifestFile, ExampleInTheDocsIsOne) {
  const TestFolder folder;
  const std::string page = get_file("docs/checkpoint.md");
  const std::string open = "```json\n";
  const std::size_t begin = page.find(open) + open.size();
  const std::string example = page.substr(begin, page.find("```", begin) - begin);
  EXPECT_EQ(read_manifest(put_manifest(folder, example)).run["topology"], "ring");
}

TEST(ManifestFile, EveryFlippedBitAndEveryTruncationIsSeen) {
  const TestFolder folder;
  const std::string whole = manifest_text(small_manifest());
  for (std::size_t at = 0; at < whole.size(); ++at) {
    EXPECT_THROW(read_manifest(put_manifest(folder, whole.substr(0, at))), IoError) << at;
    for (int bit = 0; bit < 8; ++bit) {
      std::string altered = whole;
      altered[at] = static_cast<char>(altered[at] ^ (1 << bit));
      EXPECT_THROW(read_manifest(put_manifest(folder, altered)), IoError) << at << " bit " << bit;
    }
  }
}

TEST(ManifestFile, FaultsAreNamed) {
  const TestFolder folder;
  const std::string whole = manifest_text(small_manifest());
  const auto message_for = [&](const std::string& text) {
    return message_of<IoError>([&] { read_manifest(put_manifest(folder, text)); });
  };
  const auto expect = [](const std::string& message, const std::string& part) {
    EXPECT_TRUE(contains(message, part)) << message;
    EXPECT_TRUE(contains(message, "manifest.json")) << message;
  };
  for (const char* text : {"", "{]", "[1]", "{}"}) expect(message_for(text), "checksum");
  expect(message_for(sealed(replaced(whole, "\"step\": 120", "\"step\": ]"))), "not JSON");
  expect(message_for(sealed(replaced(whole, "gossamer checkpoint", "another"))),
         "not the manifest of a Gossamer checkpoint");
  const std::string deep = "\"step\": " + std::string(200'000, '[') + std::string(200'000, ']');
  expect(message_for(sealed(replaced(whole, "\"step\": 120", deep))), "nested in more than 8");
  expect(message_for(std::string(400'000, '[')), "checksum");
  expect(message_for(sealed(replaced(whole, "\"version\": 1", "\"version\": 2"))),
         "reads 1), got 2");
  expect(message_for(replaced(whole, "ring", "rang")), "checksum");
  expect(message_for(sealed(replaced(whole, "\"step\": 120", "\"step\": 121"))), "another step");
  expect(message_for(sealed(replaced(whole, "\"step\": 120", "\"step\": -1"))), "whole number");
  expect(message_for(sealed(replaced(whole, "\"workers\": 2", "\"workers\": 3"))), "one file for");
  expect(message_for(sealed(replaced(whole, "\"workers\": 2", "\"workers\": 1e99"))),
         "whole number");
  expect(message_for(sealed(replaced(whole, "worker-00001", "../../00001"))), "order of the ranks");
  expect(message_for(sealed(replaced(whole, "0000abcd", "0000abcg"))), "hexadecimal");
  expect(message_for(sealed(replaced(whole, "\"seed\"", "\"seeds\""))), "seed");
  expect(message_of<IoError>([&] { read_manifest(folder / "step-00000007"); }), "is missing");
}

TEST(ManifestFile, RefusesWhatCannotBeCommitted) {
  Manifest unsorted = small_manifest();
  std::swap(unsorted.files[0], unsorted.files[1]);
  Manifest few = small_manifest();
  few.files.pop_back();
  Manifest none;
  for (const Manifest& manifest : {unsorted, few, none}) {
    EXPECT_THROW(check_manifest(manifest), std::invalid_argument);
  }
  EXPECT_NO_THROW(check_manifest(small_manifest()));
}

TEST(ManifestRun, SameRunPassesAndAnotherIsListedKeyByKey) {
  const Manifest manifest = small_manifest();
  EXPECT_NO_THROW(require_same_run(manifest, {{"lr", 0.1}, {"topology", "ring"}}));
  const std::string message = message_of<std::invalid_argument>(
      [&] { require_same_run(manifest, {{"topology", "grid"}, {"lr", 0.1}, {"momentum", 0.9}}); });
  EXPECT_TRUE(contains(message, "topology = \"grid\" where it was \"ring\"")) << message;
  EXPECT_TRUE(contains(message, "momentum = 0.9 where it was absent")) << message;
  EXPECT_FALSE(contains(message, "lr")) << message;
}

}  // namespace
}  // namespace gossamer
