#include "bindings/theory.h"

#include <pybind11/stl.h>

#include <string>
#include <utility>
#include <vector>

#include "bindings/typing.h"
#include "gossamer/model/dadam_bound.h"
#include "gossamer/model/published_fit.h"
#include "gossamer/model/rates.h"
#include "gossamer/model/topology_orders.h"

namespace py = pybind11;

// Values go to Python as dictionaries, of which gossamer/theory.py makes its own types.
namespace gossamer::python {
namespace {

using namespace pybind11::literals;
using Records = std::vector<Record>;

Record bound_of(double lambda, double steps, double parameters, double step_size, double beta1,
                double beta2, double epsilon, double gradient_bound, double smoothness,
                double excess_loss) {
  const DAdamSetting setting{.step_size = step_size,
                             .beta1 = beta1,
                             .beta2 = beta2,
                             .epsilon = epsilon,
                             .steps = steps,
                             .parameters = parameters,
                             .gradient_bound = gradient_bound,
                             .smoothness = smoothness,
                             .excess_loss = excess_loss,
                             .lambda = lambda};
  const DAdamBound bound = dadam_bound(setting);
  Records terms;
  for (const DAdamTerm& term : dadam_terms()) {
    const double value = bound.*term.value;
    terms.push_back(Record("term"_a = term.name, "formula"_a = term.formula, "value"_a = value,
                           "in_bound"_a = value * (term.times_per_step ? bound.per_step : 1)));
  }
  return Record("terms"_a = terms, "per_step"_a = bound.per_step, "bound"_a = bound.total(),
                "known_at_start"_a = known_at_start(setting),
                "verdict"_a = name_of(verdict_on(bound, setting)));
}

Records rates_of(int workers, double rho, double steps, double sigma, double b,
                 int global_average_every) {
  const RateSetting setting{
      .mixing = {.workers = workers, .rho = rho, .global_average_every = global_average_every},
      .steps = steps,
      .sigma = sigma,
      .b = b};
  Records rates;
  for (const RateValue& value : evaluate_rates(setting)) {
    Records terms;
    for (const RateTermValue& term : value.terms) {
      terms.push_back(Record("term"_a = term.name, "order"_a = term.order, "value"_a = term.value,
                             "even_from"_a = term.even_from));
    }
    rates.push_back(Record("method"_a = name_of(value.rate.method),
                           "loss"_a = name_of(value.rate.curvature), "terms"_a = terms,
                           "sum"_a = value.sum, "note"_a = value.rate.note));
  }
  return rates;
}

Records transient_of(int workers, double rho, int global_average_every) {
  Records rows;
  for (const TransientRow& row : transient_rows()) {
    const double iterations = transient_iterations(row, {workers, rho, global_average_every});
    rows.push_back(Record("method"_a = name_of(row.method), "loss"_a = name_of(row.curvature),
                          "data"_a = name_of(row.data), "order"_a = product_text(factors_of(row)),
                          "iterations"_a = iterations));
  }
  return rows;
}

Records topologies_on(std::vector<int> workers_per_host) {
  Records rows;
  for (const TopologyComparison& row : compare_topologies({std::move(workers_per_host)})) {
    rows.push_back(
        Record("topology"_a = row.order.topology, "communication"_a = row.order.communication,
               "order"_a = product_text(factors_of(row.order)),
               "printed_iterations"_a = row.printed_iterations, "neighbours"_a = row.neighbours,
               "rho"_a = row.rho, "iterations"_a = row.iterations));
  }
  return rows;
}

using Pair = std::pair<double, double>;

/// {T_AR, T_D} in closed form and by the recursion.
std::pair<Pair, Pair> step_pairs(const Schedule& schedule, double gamma, double omega, double sigma,
                                 int buckets, double forward_share, int steps, std::uint64_t seed) {
  const JitterCase c{.ratios = {.gamma = gamma,
                                .omega = omega,
                                .buckets = buckets,
                                .forward_share = forward_share},
                     .sigma = sigma,
                     .seed = seed,
                     .steps = steps};
  const StepPair closed = closed_step_times(c.ratios, sigma, schedule.shape.workers());
  const StepPair recursion = step_times_with_jitter(schedule, c);
  return {{closed.allreduce, closed.decentralized}, {recursion.allreduce, recursion.decentralized}};
}

}  // namespace

void bind_theory(py::module_& module) {
  module.def(
      "theory_mixing",
      [](const Schedule& schedule) {
        const MixingStrength mixing = theory_mixing(schedule);
        return std::pair(mixing.workers, mixing.rho);
      },
      py::arg("schedule"),
      "(workers, effective rho). ValueError where W is not doubly stochastic.");
  module.def("theory_bound", &bound_of, py::kw_only(), py::arg("lambda_"), py::arg("steps"),
             py::arg("parameters"), py::arg("step_size"), py::arg("beta1"), py::arg("beta2"),
             py::arg("epsilon"), py::arg("gradient_bound"), py::arg("smoothness"),
             py::arg("excess_loss"), "The fields of ``gossamer.theory.Bound``.");
  module.def("theory_rates", &rates_of, py::kw_only(), py::arg("workers"), py::arg("rho"),
             py::arg("steps"), py::arg("sigma"), py::arg("b"), py::arg("global_average_every"),
             "The fields of each ``gossamer.theory.Rate``.");
  module.def("theory_transient", &transient_of, py::kw_only(), py::arg("workers"), py::arg("rho"),
             py::arg("global_average_every"), "The fields of each ``gossamer.theory.Transient``.");
  module.def("theory_topologies", &topologies_on, py::arg("workers_per_host"),
             "The fields of each ``gossamer.theory.TopologyRow``.");
  module.def("theory_step_times", &step_pairs, py::arg("schedule"), py::kw_only(), py::arg("gamma"),
             py::arg("omega"), py::arg("sigma"), py::arg("buckets"), py::arg("forward_share"),
             py::arg("steps"), py::arg("seed"),
             "(all-reduce, decentralized) in closed form, and the same by the recursion.");
}

}  // namespace gossamer::python
