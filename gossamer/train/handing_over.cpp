#include "gossamer/train/handing_over.h"

#include <array>
#include <cstring>
#include <filesystem>
#include <string_view>
#include <utility>

#include "gossamer/base/disk.h"
#include "gossamer/base/errors.h"
#include "gossamer/base/index.h"
#include "gossamer/checkpoint/folder.h"
#include "gossamer/checkpoint/load.h"
#include "gossamer/checkpoint/memory_folder.h"
#include "gossamer/checkpoint/save.h"
#include "gossamer/train/kept.h"

namespace gossamer {
namespace {

constexpr const char* kManifest = "manifest.json";

/// `began`, and how long the manifest is, which follows; then comes the worker's file.
using Head = std::array<std::int64_t, 2>;

std::string content_of(const std::filesystem::path& path) {
  const FileBytes bytes = read_file(path);
  return {reinterpret_cast<const char*>(bytes.memory.get()), bytes.size};
}

}  // namespace

std::string packed_state(const TrainedRun& run, Trainer& trainer, std::int64_t began) {
  const MemoryFolder scratch;
  Manifest manifest = described(run, trainer, {trainer.engine().collectives().rank()});
  const auto begun = begin_checkpoint(scratch.path(), manifest.step, "handed-over");
  manifest.files = {write_kept(begun.temporary, 0, trainer, run.recipe)};
  const std::string name = manifest.files[0].name;
  const auto folder = commit_checkpoint(begun.temporary, scratch.path(), std::move(manifest));
  const std::string said = content_of(folder / kManifest);
  const Head head{began, std::ssize(said)};
  std::string state(sizeof head, '\0');
  std::memcpy(state.data(), head.data(), sizeof head);
  return state + said + content_of(folder / name);
}

std::int64_t take_state(const TrainedRun& run, Trainer& trainer, const std::string& state) {
  Head head{};
  check_argument("train", state.size() >= sizeof head, "the state of a worker must be whole",
                 std::to_string(state.size()) + " bytes");
  std::memcpy(head.data(), state.data(), sizeof head);
  const std::string_view rest = std::string_view(state).substr(sizeof head);
  check_argument("train", head[1] >= 0 && head[1] <= std::ssize(rest),
                 "the state of a worker must be whole", std::to_string(state.size()) + " bytes");
  const MemoryFolder scratch(std::ssize(state));
  write_file(scratch.path() / kManifest, rest.substr(0, at(head[1])));
  const Manifest manifest = read_checkpoint(scratch.path());
  write_file(scratch.path() / manifest.files.at(0).name, rest.substr(at(head[1])));
  const Manifest own = described(run, trainer, {trainer.engine().collectives().rank()});
  require_same_model(manifest, own.optimizer, own.model);
  take_kept(open_worker_file(scratch.path(), manifest, 0), manifest, trainer, run.recipe);
  return head[0];
}

}  // namespace gossamer
