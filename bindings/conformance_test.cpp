/// The Python extension gossamer._core_test: the conformance suite over groups that Python makes,
/// because only Python can make Gloo's.

#include "gossamer/transport/conformance.h"

#include <torch/csrc/utils/pybind.h>

#include <stdexcept>

#include "bindings/transport.h"

namespace gossamer::conformance {
namespace {

py::object* make_groups = nullptr;  // while `run` runs

/// The transports of all workers, over [{peer: group}] by rank from `make_groups(kind, workers)`.
std::vector<std::unique_ptr<Transport>> make_transports(const char* kind, int workers) {
  std::vector<C10dOptions> options;
  {
    const py::gil_scoped_acquire interpreter;
    for (const py::handle groups : (*make_groups)(kind, workers)) {
      const int rank = static_cast<int>(options.size());
      options.push_back(python::c10d_options(rank, workers, groups.cast<py::dict>()));
    }
  }
  std::vector<std::unique_ptr<Transport>> transports;
  for (const C10dOptions& each : options) transports.push_back(make_c10d_transport(each));
  return transports;
}

INSTANTIATE_TEST_SUITE_P(
    Transports, TransportConformance,
    ::testing::Values(
        Case{"c10d_pairs", [](int workers) { return make_transports("pairs", workers); }},
        Case{"c10d_shared", [](int workers) { return make_transports("shared", workers); }}),
    name_of);

void initialise() {
  int argc = 1;
  char name[] = "conformance";
  char* argv[] = {name, nullptr};
  ::testing::InitGoogleTest(&argc, argv);
}

std::vector<std::string> names() {
  std::vector<std::string> found;
  const auto& all = *::testing::UnitTest::GetInstance();
  for (int i = 0; i < all.total_test_suite_count(); ++i) {
    const auto& suite = *all.GetTestSuite(i);
    for (int k = 0; k < suite.total_test_count(); ++k) {
      found.push_back(std::string(suite.name()) + "." + suite.GetTestInfo(k)->name());
    }
  }
  return found;
}

bool run(const std::string& name, py::object make) {
  make_groups = &make;
  GTEST_FLAG_SET(filter, name);
  int result = 0;
  {
    const py::gil_scoped_release no_gil;
    result = RUN_ALL_TESTS();
  }
  make_groups = nullptr;
  return result == 0 && ::testing::UnitTest::GetInstance()->successful_test_count() == 1;
}

}  // namespace
}  // namespace gossamer::conformance

PYBIND11_MODULE(_core_test, module) {
  module.doc() = "The conformance suite of transports, for tests.";
  py::module_::import("gossamer._core");
  gossamer::conformance::initialise();
  module.def("names", &gossamer::conformance::names, "Of all tests.");
  module.def("run", &gossamer::conformance::run, py::arg("name"), py::arg("make_groups"),
             "Runs one test, printing as GoogleTest does; make_groups(kind, workers) gives "
             "[{peer: group}] by rank. True when it passed.");
}
