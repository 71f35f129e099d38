#include "bindings/checkpoint.h"

#include <pybind11/stl.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gossamer/checkpoint/folder.h"
#include "gossamer/checkpoint/keys.h"
#include "gossamer/checkpoint/load.h"
#include "gossamer/checkpoint/memory_folder.h"
#include "gossamer/checkpoint/save.h"
#include "gossamer/torch/tensors/tensor_files.h"

namespace gossamer::python {
namespace {

using NoGil = py::call_guard<py::gil_scoped_release>;
using NamedTensors = std::vector<std::pair<std::string, at::Tensor>>;
using Paths = std::vector<std::string>;

std::pair<std::uint64_t, std::uint32_t> write_tensors(const std::string& temporary, int rank,
                                                      const NamedTensors& tensors,
                                                      const TensorMetadata& metadata) {
  std::vector<TensorView> views;
  for (const auto& [name, tensor] : tensors) views.push_back(view_of_tensor(name, tensor));
  const WorkerFile file = write_worker_file(temporary, rank, views, metadata);
  return {file.bytes, file.crc32};
}

/// A file in memory, which its tensors keep there.
class TensorFile {
 public:
  explicit TensorFile(SafetensorsFile file)
      : file_(std::make_shared<const SafetensorsFile>(std::move(file))) {}

  std::vector<std::string> keys() const {
    std::vector<std::string> names;
    for (const TensorView& tensor : file_->tensors()) names.push_back(tensor.name);
    return names;
  }
  const TensorMetadata& metadata() const { return file_->metadata(); }

  at::Tensor tensor(const std::string& key) const { return tensor_in(file_, key); }

 private:
  std::shared_ptr<const SafetensorsFile> file_;
};

Manifest make_manifest(std::int64_t step, std::string created, std::string optimizer,
                       std::string pattern, std::vector<std::string> model, int groups,
                       const std::vector<std::pair<std::int64_t, double>>& losses,
                       const std::vector<std::pair<std::uint64_t, std::uint32_t>>& files) {
  Manifest manifest;
  manifest.step = step;
  manifest.created = std::move(created);
  manifest.workers = static_cast<int>(files.size());
  manifest.optimizer = std::move(optimizer);
  manifest.pattern = std::move(pattern);
  manifest.model = std::move(model);
  manifest.groups = groups;
  for (const auto& [at, loss] : losses) manifest.losses.push_back({at, loss});
  for (const auto& [bytes, crc32] : files) {
    manifest.files.push_back(worker_file(static_cast<int>(manifest.files.size()), {bytes, crc32}));
  }
  return manifest;
}

void bind_manifest(py::module_& module) {
  py::class_<Manifest>(module, "Manifest",
                       "What a checkpoint says of itself; see docs/checkpoint.md.")
      .def(py::init(&make_manifest), py::kw_only(), py::arg("step"), py::arg("created"),
           py::arg("optimizer"), py::arg("pattern"), py::arg("model"), py::arg("groups"),
           py::arg("losses"), py::arg("files"),
           "``files``: length and CRC-32 of each worker's file, in the order of the ranks.")
      .def_readonly("step", &Manifest::step)
      .def_readonly("workers", &Manifest::workers)
      .def_readonly("optimizer", &Manifest::optimizer)
      .def_readonly("pattern", &Manifest::pattern)
      .def_readonly("model", &Manifest::model)
      .def_readonly("groups", &Manifest::groups)
      .def_property_readonly("losses",
                             [](const Manifest& self) {
                               std::vector<std::pair<std::int64_t, double>> losses;
                               for (const auto& [at, loss] : self.losses) {
                                 losses.emplace_back(at, loss);
                               }
                               return losses;
                             })
      .def_property_readonly("checksum", &manifest_checksum)
      .def(
          "require_same_model",
          [](const Manifest& self, const std::string& optimizer,
             const std::vector<std::string>& model) { require_same_model(self, optimizer, model); },
          py::arg("optimizer"), py::arg("model"), "ValueError with the first line that differs.");
}

void bind_keys(py::module_& module) {
  module.def("parameter_key", &parameter_key, py::arg("name"), "The key of a parameter's values.");
  module.def("buffer_key", &buffer_key, py::arg("name"), "The key of a buffer.");
  module.def("mixed_key", &mixed_key, py::arg("name"),
             "The key of what travels of a parameter that is mixed in a wider dtype.");
  module.def("beside_key", &beside_key, py::arg("name"),
             "The key of a tensor that is mixed beside the parameters.");
  module.def(
      "optimizer_key", &optimizer_key, py::arg("name"), py::arg("vector") = "",
      "The key of an optimizer's vector; without one, what all of the parameter begin with.");
  module.def("pattern_key", &pattern_key, py::arg("pattern"), py::arg("vector"), py::arg("name"),
             "The key of a vector that a pattern keeps.");
  module.def("group_key", &group_key, py::arg("group"),
             "What the keys of a group's settings begin with.");
  module.def(
      "model_line",
      [](const std::string& kind, const std::string& name, const std::vector<std::int64_t>& shape,
         const std::string& dtype) { return model_line(kind, name, shape, dtype); },
      py::arg("kind"), py::arg("name"), py::arg("shape"), py::arg("dtype"),
      "What a manifest says of a tensor of the model.");
}

void bind_saving(py::module_& module) {
  module.def(
      "begin_checkpoint",
      [](const std::string& folder, std::int64_t step, const std::string& attempt) {
        const BegunCheckpoint begun = begin_checkpoint(folder, step, attempt);
        return std::pair(begun.temporary.native(), begun.commits);
      },
      NoGil(), py::arg("folder"), py::arg("step"), py::arg("attempt"),
      "The temporary folder, and whether this worker commits on its file system. IoError.");
  module.def(
      "temporary_checkpoint",
      [](const std::string& folder, std::int64_t step, const std::string& attempt) {
        return temporary_checkpoint(folder, step, attempt).native();
      },
      py::arg("folder"), py::arg("step"), py::arg("attempt"),
      "The temporary folder, as begin_checkpoint makes it.");
  py::class_<MemoryFolder>(module, "MemoryFolder", R"(
    A folder in memory, which is gone with this. It removes those of processes that were killed
    while they had one. IoError.)")
      .def(py::init<std::int64_t>(), NoGil(), py::arg("bytes") = 0, R"(
    In GOSSAMER_STATE_FOLDER, else in /dev/shm or TMPDIR, the first that has room.)")
      .def_property_readonly("path", [](const MemoryFolder& self) { return self.path().native(); });
  module.def("write_worker_file", &write_tensors, NoGil(), py::arg("temporary"), py::arg("rank"),
             py::arg("tensors"), py::arg("metadata"), R"(
    Length and CRC-32 of the file, which is on the disk then.

    IoError; ValueError for what the format cannot hold.
    )");
  module.def(
      "commit_checkpoint",
      [](const std::string& temporary, const std::string& folder, const Manifest& manifest,
         const std::vector<int>& here) {
        return commit_checkpoint(temporary, folder, manifest, here).native();
      },
      NoGil(), py::arg("temporary"), py::arg("folder"), py::arg("manifest"), py::arg("here"),
      "Gives the checkpoint its name; the files of the ranks ``here`` must be there. IoError.");
  module.def(
      "abandon_checkpoint", [](const std::string& temporary) { abandon_checkpoint(temporary); },
      NoGil(), py::arg("temporary"), "Removes what will not be committed.");
  module.def(
      "prune_checkpoints",
      [](const std::string& folder, int keep) { prune_checkpoints(folder, keep); }, NoGil(),
      py::arg("folder"), py::arg("keep"),
      "Removes all but the newest. IoError for what stays, which the next call tries again.");
}

void bind_loading(py::module_& module) {
  py::class_<TensorFile>(module, "TensorFile", "A file of the format safetensors, in memory.")
      .def(py::init([](const std::string& path) {
             const py::gil_scoped_release no_gil;
             return TensorFile(SafetensorsFile(path));
           }),
           py::arg("path"), "IoError for what is no such file.")
      .def("keys", &TensorFile::keys, "The names of the tensors.")
      .def_property_readonly("metadata", &TensorFile::metadata)
      .def("tensor", &TensorFile::tensor, py::arg("key"),
           "A tensor in the file's memory, which stays as long as it does. IoError without one.");
  module.def(
      "checkpoints_in",
      [](const std::string& folder) {
        Paths paths;
        for (const auto& path : checkpoints_in(folder)) paths.push_back(path.native());
        return paths;
      },
      NoGil(), py::arg("folder"), "The checkpoints that have a manifest, the newest first.");
  module.def(
      "read_checkpoint", [](const std::string& path) { return read_checkpoint(path); }, NoGil(),
      py::arg("checkpoint"), "IoError, which names the newest earlier checkpoint.");
  module.def(
      "open_worker_file",
      [](const std::string& path, const Manifest& manifest, int rank) {
        return TensorFile(open_worker_file(path, manifest, rank));
      },
      NoGil(), py::arg("checkpoint"), py::arg("manifest"), py::arg("rank"),
      "The file of a rank. IoError unless it is what was written.");
}

}  // namespace

void bind_checkpoint(py::module_& module) {
  bind_manifest(module);
  bind_keys(module);
  bind_saving(module);
  bind_loading(module);
}

}  // namespace gossamer::python
