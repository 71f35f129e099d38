#include "gossamer/checkpoint/load.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include "gossamer/checkpoint/test_checkpoints.h"

namespace gossamer {
namespace checkpoint_test {

TEST(CheckpointVerify, EveryFlippedBitOfAFileIsSeen) {
  const ScratchFolder folder;
  save(folder.path(), 10);
  const fs::path checkpoint = save(folder.path(), 20);
  const Manifest manifest = read_manifest(checkpoint);
  const fs::path file = checkpoint / worker_file_name(1);
  const std::string whole = get_file(file);
  for (std::size_t at = 0; at < whole.size(); ++at) {
    std::string altered = whole;
    altered[at] = static_cast<char>(altered[at] ^ (1 << (at % 8)));
    put_file(file, altered);
    const std::string message = message_of<IoError>([&] { verify_checkpoint(checkpoint); });
    EXPECT_TRUE(contains(message, file.native() + "] is altered")) << message;
    EXPECT_TRUE(contains(message, "use the earlier checkpoint step-00000010")) << message;
    EXPECT_THROW(open_worker_file(checkpoint, manifest, 1), IoError) << at;
  }
  put_file(file, whole);
  EXPECT_NO_THROW(verify_checkpoint(checkpoint));
}

TEST(CheckpointVerify, EveryTruncationIsNamedWithBothLengths) {
  const ScratchFolder folder;
  const fs::path checkpoint = save(folder.path(), 20);
  const Manifest manifest = read_manifest(checkpoint);
  const fs::path file = checkpoint / worker_file_name(0);
  const std::string whole = get_file(file);
  for (std::size_t length = 0; length < whole.size(); ++length) {
    put_file(file, whole.substr(0, length));
    const std::string says = "is truncated, got " + std::to_string(length) + " of " +
                             std::to_string(whole.size()) + " bytes; there is no earlier";
    const auto verify = message_of<IoError>([&] { verify_checkpoint(checkpoint); });
    const auto open = message_of<IoError>([&] { open_worker_file(checkpoint, manifest, 0); });
    EXPECT_TRUE(contains(verify, says)) << verify;
    EXPECT_TRUE(contains(open, says)) << open;
  }
  put_file(file, whole + "x");
  const auto longer = message_of<IoError>([&] { verify_checkpoint(checkpoint); });
  EXPECT_TRUE(contains(longer, "is longer than when it was written")) << longer;
}

TEST(CheckpointVerify, MissingFilesAreNamed) {
  const ScratchFolder folder;
  save(folder.path(), 10);
  const fs::path checkpoint = save(folder.path(), 20);
  fs::remove(checkpoint / worker_file_name(1));
  const auto worker = message_of<IoError>([&] { verify_checkpoint(checkpoint / ""); });
  EXPECT_TRUE(contains(worker, "the file of worker 1 is missing")) << worker;
  EXPECT_TRUE(contains(worker, "use the earlier checkpoint step-00000010")) << worker;
  fs::remove(checkpoint / "manifest.json");
  EXPECT_TRUE(
      contains(message_of<IoError>([&] { verify_checkpoint(checkpoint); }), "not complete"));
}

TEST(CheckpointRead, DamagedManifestsNameTheEarlierCheckpoint) {
  const ScratchFolder folder;
  save(folder.path(), 10);
  save(folder.path(), 20);
  const fs::path checkpoint = save(folder.path(), 30);
  put_file(folder / "step-00000020" / "manifest.json", "{}");
  put_file(checkpoint / "manifest.json", get_file(checkpoint / "manifest.json") + " ");
  const auto altered = message_of<IoError>([&] { read_checkpoint(checkpoint); });
  EXPECT_TRUE(contains(altered, "use the earlier checkpoint step-00000010")) << altered;
  EXPECT_TRUE(contains(altered, "is altered")) << altered;
}

TEST(CheckpointRead, PipesAreErrorsAndNoWaits) {
  const ScratchFolder folder;
  const fs::path checkpoint = save(folder.path(), 30);
  const Manifest manifest = read_checkpoint(checkpoint);
  for (const std::string& name : {worker_file_name(0), std::string(kManifestName)}) {
    fs::remove(checkpoint / name);
    ASSERT_EQ(::mkfifo((checkpoint / name).c_str(), 0666), 0);
  }
  const auto file = message_of<IoError>([&] { open_worker_file(checkpoint, manifest, 0); });
  EXPECT_TRUE(contains(file, "is not a regular file")) << file;
  const auto text = message_of<IoError>([&] { read_checkpoint(checkpoint); });
  EXPECT_TRUE(contains(text, "is not a regular file")) << text;
}

}  // namespace checkpoint_test
}  // namespace gossamer
