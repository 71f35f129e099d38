#include "gossamer/checkpoint/manifest.h"

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
  manifest.created = "2025-01-31T12:00:00Z";
  manifest.workers = 2;
  manifest.optimizer = "adamw";
  manifest.pattern = "extra";
  manifest.model = {"parameter '0.weight' [2, 3] float32", "buffer 'n' [] int64"};
  manifest.groups = 1;
  manifest.losses = {{100, 0.1}, {110, std::numeric_limits<double>::quiet_NaN()}};
  manifest.run = {{"topology", "ring"}, {"lr", 0.1}};
  manifest.files = {worker_file(0, {640, 0x0000abcdu}),
                    worker_file(1, {std::uint64_t{1} << 40, 0xffffffffu})};
  return manifest;
}

/// A folder of the right name with `text` as its manifest.
std::filesystem::path put_manifest(const ScratchFolder& folder, const std::string& text) {
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
  const ScratchFolder folder;
  EXPECT_EQ(read_manifest(put_manifest(folder, manifest_text(small_manifest()))), small_manifest());
}

TEST(ManifestFile, IsJsonWithTheDocumentedKeys) {
  const Json json = Json::parse(manifest_text(small_manifest()));
  EXPECT_EQ(json["format"], "gossamer checkpoint");
  EXPECT_EQ(json["version"], 2);
  EXPECT_EQ(json["files"][0]["crc32"], "0000abcd");
  EXPECT_EQ(json["files"][1]["member"], 1);
  EXPECT_EQ(json["model"][1], "buffer 'n' [] int64");
  EXPECT_EQ(json["losses"][0], Json::array({100, 0.1}));
  EXPECT_TRUE(json["losses"][1][1].is_null());
  EXPECT_EQ(json["epoch"], 0);
  const std::string page = get_file("docs/checkpoint.md");
  for (const auto& [key, value] : json.items()) EXPECT_TRUE(contains(page, "`" + key + "`")) << key;
}

TEST(ManifestFile, ExampleInTheDocsIsOne) {
  const ScratchFolder folder;
  const std::string page = get_file("docs/checkpoint.md");
  const std::string open = "```json\n";
  const std::size_t begin = page.find(open) + open.size();
  const std::string example = page.substr(begin, page.find("```", begin) - begin);
  EXPECT_EQ(read_manifest(put_manifest(folder, example)).run["topology"], "ring");
}

TEST(ManifestFile, EveryFlippedBitAndEveryTruncationIsSeen) {
  const ScratchFolder folder;
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
  const ScratchFolder folder;
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
  expect(message_for(sealed(replaced(whole, "\"version\": 2", "\"version\": 3"))),
         "reads 2), got 3; use the gossamer that wrote it");
  expect(message_for(sealed(replaced(whole, "\"version\": 2", "\"version\": 1"))),
         "reads 2), got 1; finish the run with the gossamer that wrote it");
  expect(message_for("{\n \"format\": \"gossip checkpoint\",\n \"version\": 1,\n"),
         "reads 2), got 1 of gossip.save; convert it: python -m gossamer.checkpoint.convert");
  expect(message_for(replaced(whole, "ring", "rang")), "checksum");
  expect(message_for(sealed(replaced(whole, "\"step\": 120", "\"step\": 121"))), "another step");
  expect(message_for(sealed(replaced(whole, "\"step\": 120", "\"step\": -1"))), "whole number");
  expect(message_for(sealed(replaced(whole, "\"workers\": 2", "\"workers\": 3"))), "one file for");
  expect(message_for(sealed(replaced(whole, "\"workers\": 2", "\"workers\": 1e99"))),
         "whole number");
  expect(message_for(sealed(replaced(whole, "worker-00001", "../../00001"))), "order of the ranks");
  expect(message_for(sealed(replaced(whole, "0000abcd", "0000abcg"))), "hexadecimal");
  for (const char* key : {"epoch", "optimizer", "pattern", "model", "groups", "losses", "member"}) {
    const std::string quoted = std::string("\"") + key + "\"";
    expect(message_for(sealed(replaced(whole, quoted, "\"x\""))), key);
  }
  expect(message_for(sealed(replaced(whole, "0.1\n", "\"much\"\n"))), "a loss is not a step");
  expect(message_for(sealed(replaced(whole, "\"losses\": [", "\"losses\": [7,"))), "a loss is");
  expect(message_for(sealed(replaced(whole, "\"buffer 'n' [] int64\"", "7"))), "altered");
  expect(message_for(sealed(replaced(whole, "\"run\": {", "\"run\": 7, \"walk\": {"))), "run");
  expect(message_of<IoError>([&] { read_manifest(folder / "step-00000007"); }), "is missing");
}

TEST(ManifestFile, KeysThatNobodyKnowsAreIgnored) {
  const ScratchFolder folder;
  const std::string whole = manifest_text(small_manifest());
  const std::string more = sealed(replaced(whole, "\"step\"", "\"note\": [1], \"step\""));
  EXPECT_EQ(read_manifest(put_manifest(folder, more)), small_manifest());
}

TEST(ManifestFile, ChecksumIsThatOfTheText) {
  const std::string text = manifest_text(small_manifest());
  char line[64];
  std::snprintf(line, sizeof line, "\"checksum\": \"%08x\"", manifest_checksum(small_manifest()));
  EXPECT_TRUE(contains(text, line));
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

TEST(ManifestModel, TensorsAndOptimizersMustBeTheSameInAnyOrder) {
  const Manifest manifest = small_manifest();
  const std::string weight = "parameter '0.weight' [2, 3] float32";
  const std::string buffer = "buffer 'n' [] int64";
  const auto refusal = [&](const char* optimizer, std::vector<std::string> model) {
    return message_of<std::invalid_argument>(
        [&] { require_same_model(manifest, optimizer, model); });
  };
  EXPECT_NO_THROW(require_same_model(manifest, "adamw", std::vector{buffer, weight}));
  EXPECT_NO_THROW(require_same_model(manifest, "AdamW", std::vector{weight, buffer}));
  const std::string optimizer = refusal("sgd", {weight, buffer});
  EXPECT_TRUE(contains(optimizer, "it has optimizer adamw, got optimizer sgd;")) << optimizer;
  const std::string shape = refusal("adamw", {"parameter '0.weight' [3, 3] float32", buffer});
  EXPECT_TRUE(contains(shape, "it has " + weight + ", got parameter '0.weight' [3, 3]")) << shape;
  const std::string fewer = refusal("adamw", {weight});
  EXPECT_TRUE(contains(fewer, "it has " + buffer + ", got nothing;")) << fewer;
  const std::string more = refusal("adamw", {weight, buffer, "buffer 'm' [] int64"});
  EXPECT_TRUE(contains(more, "it has nothing, got buffer 'm' [] int64;")) << more;
  EXPECT_TRUE(contains(refusal("adamw", {weight, weight, buffer}), "once"));
}

TEST(ManifestModel, MomentumIsAKindOfSgd) {
  Manifest manifest;
  manifest.optimizer = "momentum";
  EXPECT_NO_THROW(require_same_model(manifest, "sgd", {}));
  manifest.optimizer = "accum_adam";
  EXPECT_NO_THROW(require_same_model(manifest, "AccumAdam", {}));
}

}  // namespace
}  // namespace gossamer
