#include "bindings/lab.h"

#include <torch/csrc/utils/pybind.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "gossamer/algo/choices.h"
#include "gossamer/base/errors.h"
#include "gossamer/graph/schedule_file.h"
#include "gossamer/lab/virtual_workers.h"

namespace gossamer::python {
namespace {

namespace py = pybind11;

/// Python sends tensors of n·d doubles, one after the other, on the CPU.
std::span<double> values_of(const VirtualWorkers& workers, const at::Tensor& tensor) {
  const auto count =
      static_cast<std::size_t>(workers.workers()) * static_cast<std::size_t>(workers.dimension());
  GOSSAMER_ASSERT(tensor.scalar_type() == at::kDouble && tensor.is_contiguous() &&
                  tensor.device().is_cpu() && static_cast<std::size_t>(tensor.numel()) == count);
  return {tensor.mutable_data_ptr<double>(), count};
}

void start(VirtualWorkers& workers, const at::Tensor& x) {
  std::ranges::copy(values_of(workers, x), workers.x().begin());
  workers.start();
}

void step(VirtualWorkers& workers, const at::Tensor& x, const at::Tensor& g, const Hyper& hyper,
          const std::optional<Matrix>& matrix) {
  check_hyper(hyper);
  std::optional<Round> own;
  if (matrix) {
    own = round_at(schedule_from_matrices({&*matrix, 1}, even_hosts(workers.workers(), 1)), 0);
  }
  const py::gil_scoped_release release;
  std::ranges::copy(values_of(workers, x), workers.x().begin());
  std::ranges::copy(values_of(workers, g), workers.g().begin());
  if (own) {
    workers.step(hyper, *own);
  } else {
    workers.step(hyper);
  }
  std::ranges::copy(workers.x(), values_of(workers, x).begin());
}

std::vector<double> mean(VirtualWorkers& workers, const at::Tensor& x) {
  std::ranges::copy(values_of(workers, x), workers.x().begin());
  return workers.mean();
}

std::unique_ptr<VirtualWorkers> make(Schedule schedule, const std::string& pattern,
                                     const std::string& optimizer, int dimension,
                                     const Hyper& hyper) {
  check_optimizer_choice(optimizer);
  check_hyper(hyper);
  return std::make_unique<VirtualWorkers>(std::move(schedule), pattern, optimizer, dimension,
                                          hyper);
}

}  // namespace

void bind_lab(py::module_& module) {
  py::class_<VirtualWorkers>(module, "VirtualWorkers", "n workers of one process.")
      .def(py::init(&make), py::arg("schedule"), py::arg("pattern"), py::arg("optimizer"),
           py::arg("dimension"), py::arg("hyper"))
      .def("start", &start, py::arg("x"), "Before the first step, from these parameters.")
      .def("step", &step, py::arg("x"), py::arg("g"), py::arg("hyper"), py::arg("matrix"), R"(
        Changes ``x`` by the gradients ``g``. A ``matrix`` stands for the schedule's W.

        ValueError for numbers and matrices that do not fit.)")
      .def_property_readonly("steps_done", &VirtualWorkers::steps_done)
      .def_property_readonly("wants_loss", &VirtualWorkers::wants_loss,
                             "Whether the step to come needs ``agree_on``.")
      .def("agree_on", &VirtualWorkers::agree_on, py::arg("loss"),
           "The mean loss at the parameters of now, from which the rounds to come follow.")
      .def("mean", &mean, py::arg("x"), "The mean of all workers that mixing keeps.");
}

}  // namespace gossamer::python
