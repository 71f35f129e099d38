#include "gossamer/cli/train_checkpoint.h"

#include <cmath>
#include <cstdio>
#include <string>

#include "gossamer/base/errors.h"
#include "gossamer/engine/checkpoint.h"
#include "gossamer/torch/buffers.h"

namespace gossamer {
namespace {

constexpr const char* kContent = "content of the data";

std::filesystem::path checkpoints_in(const std::filesystem::path& out) {
  return out / "checkpoints";
}

/// All fields that shape the numbers, and what the data contain; a run may be resumed with more
/// steps, other file options, and data that lie elsewhere. Checkpoints of earlier versions know the
/// data only by where they lay.
enum class DataBy { content, path };

Json run_identity(const TrainSpec& spec, const std::string& content, DataBy by) {
  TrainSpec copy = spec;
  Json identity = Json::object();
  for (const TrainField& field : train_fields(copy)) {
    const bool shapes_numbers = field.section == "data" || field.section == "model" ||
                                field.section == "algorithm" || field.key == "optimizer" ||
                                field.key == "seed" || field.key == "hosts" ||
                                field.key == "per_host";
    if (!shapes_numbers || (by == DataBy::content && is_data_path(field.key))) continue;
    std::visit([&](const auto* value) { identity[std::string(field.key)] = *value; }, field.target);
  }
  if (by == DataBy::content) identity[kContent] = content;
  if (update_of(method_of(spec)) == UpdateAt::backward) identity["layout"] = "completion";
  return identity;
}

std::vector<TensorView> tensors_of(const std::vector<StateVector>& state,
                                   const std::vector<double>& buffers,
                                   const std::vector<double>& losses) {
  std::vector<TensorView> tensors;
  for (const StateVector& vector : state) {
    const auto count = static_cast<std::int64_t>(vector.bytes.size() / size_of(vector.dtype));
    tensors.push_back({vector.name, std::string(name_of(vector.dtype)), {count}, vector.bytes});
  }
  tensors.push_back(view_tensor("buffers", buffers));
  tensors.push_back(view_tensor("agreed_losses", losses));
  return tensors;
}

/// Gives every worker what each wrote. Lengths and checksums are exact in double.
std::vector<WorkerFile> gather(Collectives& collectives, const WorkerFile& own) {
  const int n = collectives.workers();
  std::vector<double> values(2 * static_cast<std::size_t>(n), 0.0);
  const auto at = 2 * static_cast<std::size_t>(own.rank);
  values[at] = static_cast<double>(own.bytes);
  values[at + 1] = own.crc32;
  collectives.mean(values);
  std::vector<WorkerFile> files;
  for (int rank = 0; rank < n; ++rank) {
    const auto k = 2 * static_cast<std::size_t>(rank);
    files.push_back({rank, worker_file_name(rank),
                     static_cast<std::uint64_t>(std::llround(values[k] * n)),
                     static_cast<std::uint32_t>(std::llround(values[k + 1] * n))});
  }
  return files;
}

WorkerFile write_own(const std::filesystem::path& temporary, Engine& engine,
                     torch::nn::Module& module) {
  std::vector<double> losses;
  for (const AgreedLoss& agreed : engine.agreed_losses()) {
    losses.push_back(static_cast<double>(agreed.step));
    losses.push_back(agreed.loss);
  }
  const std::vector<double> buffers = pack_buffers(module);
  return write_worker_file(temporary, engine.collectives().rank(),
                           tensors_of(engine.state(), buffers, losses));
}

/// What the disk has against a part of a save that every worker does: the complaint of the first of
/// them that has one; empty: none. Returns when all have done it.
template <class Work>
std::string problem_of_all(Collectives& collectives, const Work& work) {
  std::string own;
  try {
    work();
  } catch (const IoError& error) {
    own = error.what();
  }
  for (const std::string& problem : collectives.gather(own)) {
    if (!problem.empty()) return problem;
  }
  return "";
}

/// What is left is removed with the next save.
void prune(const std::filesystem::path& folder, int keep) {
  try {
    prune_checkpoints(folder, keep);
  } catch (const IoError& error) {
    std::fprintf(stderr, "gossamer: an old checkpoint is kept until the next save: %s\n",
                 error.what());
  }
}

void fill(const SafetensorsFile& file, const StateVector& vector) {
  visit_dtype(vector.dtype, [&]<class T>(T) {
    file.copy(vector.name, std::span<T>(reinterpret_cast<T*>(vector.bytes.data()),
                                        vector.bytes.size() / sizeof(T)));
  });
}

}  // namespace

bool is_data_path(std::string_view key) {
  return key == "data" || key == "target" || key == "validation" || key == "validation_target" ||
         key == "vocabulary_file";
}

std::string save_checkpoint(const TrainedRun& run, Engine& engine, torch::nn::Module& module) {
  constexpr std::string_view kAttempt = "save";
  Collectives& collectives = engine.collectives();
  const bool commits = collectives.rank() == 0;
  const auto folder = checkpoints_in(run.out);
  const std::int64_t step = engine.steps_done();
  std::filesystem::path temporary;
  const auto begin = [&] {
    if (run.lock != nullptr) run.lock->check();
    temporary = begin_checkpoint(folder, step, kAttempt);
  };
  std::string problem = problem_of_all(collectives, [&] {
    if (commits) begin();
  });
  if (!problem.empty()) return problem;
  WorkerFile own{.rank = collectives.rank()};
  problem = problem_of_all(collectives, [&] {
    begin();
    own = write_own(temporary, engine, module);
  });
  if (!problem.empty()) {
    if (commits) abandon_checkpoint(temporary);
    return problem;
  }
  const std::vector<WorkerFile> files = gather(collectives, own);
  problem = problem_of_all(collectives, [&] {
    if (!commits) return;
    if (run.lock != nullptr) run.lock->check();
    commit_checkpoint(temporary, folder,
                      {.step = step,
                       .workers = collectives.workers(),
                       .files = files,
                       .seed = run.spec.seed,
                       .run = run_identity(run.spec, run.content, DataBy::content)});
  });
  if (problem.empty() && commits) prune(folder, run.spec.keep);
  return problem;
}

bool has_checkpoint(const std::filesystem::path& out) {
  return latest_checkpoint(checkpoints_in(out)).has_value();
}

std::filesystem::path checkpoint_to_resume(const TrainedRun& run) {
  const auto checkpoint = latest_checkpoint(checkpoints_in(run.out));
  if (!checkpoint) {
    fail_io({.place = "train",
             .what = "no checkpoint in " + checkpoints_in(run.out).string(),
             .remedy = "begin the run again with --auto-resume, or in another folder"});
  }
  const Manifest manifest = read_manifest(*checkpoint);
  const DataBy by = manifest.run.contains(kContent) ? DataBy::content : DataBy::path;
  require_same_run(manifest, run_identity(run.spec, run.content, by));
  return *checkpoint;
}

void load_checkpoint(const TrainedRun& run, Engine& engine, torch::nn::Module& module) {
  const auto checkpoint = checkpoint_to_resume(run);
  const Manifest manifest = read_manifest(checkpoint);
  const SafetensorsFile file = open_worker_file(checkpoint, manifest, engine.collectives().rank());
  for (const StateVector& vector : engine.state()) fill(file, vector);
  std::vector<double> buffers = pack_buffers(module);
  file.copy("buffers", std::span(buffers));
  unpack_buffers(module, buffers);
  std::vector<double> losses(static_cast<std::size_t>(file.at("agreed_losses").shape.at(0)));
  file.copy("agreed_losses", std::span(losses));
  for (std::size_t k = 0; k + 1 < losses.size(); k += 2) {
    engine.agreed_losses().push_back({std::llround(losses[k]), losses[k + 1]});
  }
  engine.start_at(manifest.step);
}

}  // namespace gossamer
