#include "gossamer/model/convergence.h"

#include <cmath>
#include <string>

#include "gossamer/base/errors.h"
#include "gossamer/graph/spectra.h"

namespace gossamer {
namespace {

using enum TransientMethod;
using enum Curvature;
using enum DataSplit;

constexpr TransientRow kRows[] = {
    {d_sgd, strongly_convex, iid, 1, 2, 1, 0},
    {d_sgd, strongly_convex, non_iid, 1, 2, 2, 0},
    {d_sgd, generally_convex, iid, 3, 4, 2, 0},
    {d_sgd, generally_convex, non_iid, 3, 4, 4, 0},
    {d_sgd, non_convex, iid, 3, 4, 2, 0},
    {d_sgd, non_convex, non_iid, 3, 4, 4, 0},
    // Its rate does not depend on how data differ.
    {exact_diffusion, strongly_convex, iid, 1, 2, 1, 0},
    {exact_diffusion, strongly_convex, non_iid, 1, 2, 1, 0},
    {exact_diffusion, generally_convex, iid, 3, 4, 2, 0},
    {exact_diffusion, generally_convex, non_iid, 3, 4, 2, 0},
    {TransientMethod::global_average, non_convex, iid, 3, 4, 0, 2},
    {TransientMethod::global_average, non_convex, non_iid, 3, 4, 0, 4},
};

constexpr TopologyOrder kOrders[] = {
    {"ring", 7, 0, "2"},
    {"star", 7, 0, "n"},
    {"grid", 5, 2, "4"},
    {"torus", 5, 0, "4"},
    {"random", 3, 0, "n/2"},
    {"exponential", 3, 2, "~1"},
    {"one_peer_exponential", 3, 2, "1"},
};

}  // namespace

std::span<const TransientRow> transient_rows() { return kRows; }

const TransientRow* find_transient_row(TransientMethod method, Curvature curvature,
                                       DataSplit data) {
  for (const TransientRow& row : kRows) {
    if (row.method == method && row.curvature == curvature && row.data == data) return &row;
  }
  return nullptr;
}

std::string_view name_of(TransientMethod method) {
  switch (method) {
    case d_sgd:
      return "d_sgd";
    case exact_diffusion:
      return "exact_diffusion";
    case TransientMethod::global_average:
      return "global_average";
  }
  __builtin_unreachable();
}

std::string_view name_of(Curvature curvature) {
  switch (curvature) {
    case strongly_convex:
      return "strongly_convex";
    case generally_convex:
      return "generally_convex";
    case non_convex:
      return "non_convex";
  }
  __builtin_unreachable();
}

std::string_view name_of(DataSplit data) { return data == iid ? "iid" : "non_iid"; }

std::array<Factor, 4> factors_of(const TransientRow& row) {
  return {Factor{Symbol::n, static_cast<double>(row.workers_power)},
          Factor{Symbol::rho, static_cast<double>(row.rho_power)},
          Factor{Symbol::H, static_cast<double>(row.period_power)},
          Factor{Symbol::gap, -static_cast<double>(row.gap_power)}};
}

std::array<Factor, 2> factors_of(const TopologyOrder& order) {
  return {Factor{Symbol::n, static_cast<double>(order.workers_power)},
          Factor{Symbol::log_n, static_cast<double>(order.log_power)}};
}

void check_mixing(std::string_view place, const MixingStrength& mixing) {
  check_argument(place, mixing.workers >= 1, "there must be at least 1 worker",
                 std::to_string(mixing.workers));
  check_argument(place, mixing.rho >= 0 && mixing.rho <= 1, "rho must lie between 0 and 1",
                 std::to_string(mixing.rho));
  check_argument(place, mixing.global_average_every >= 1,
                 "the distance of global averages must be at least 1",
                 std::to_string(mixing.global_average_every));
}

SymbolValues symbol_values(const MixingStrength& mixing) {
  SymbolValues values;
  values.fill(1);
  const auto set = [&](Symbol symbol, double value) {
    values[static_cast<std::size_t>(symbol)] = value;
  };
  set(Symbol::n, mixing.workers);
  set(Symbol::log_n, std::log2(mixing.workers));
  set(Symbol::rho, mixing.rho);
  set(Symbol::gap, 1 - mixing.rho);
  set(Symbol::H, mixing.global_average_every);
  return values;
}

double transient_iterations(const TransientRow& row, const MixingStrength& mixing) {
  check_mixing("convergence", mixing);
  return product_value(factors_of(row), symbol_values(mixing));
}

double effective_rho(const Schedule& schedule) {
  return 1 - (1 - period_contraction(schedule)) / observed_rounds(schedule);
}

double lasting_rho(const Schedule& schedule) {
  constexpr int kPeriods = 8;
  if (schedule.period <= 1 || exact_average(schedule)) return effective_rho(schedule);
  Schedule many = schedule;
  many.period = kPeriods * schedule.period;
  many.round = [schedule](std::int64_t t, std::span<const AgreedLoss> losses) {
    return round_at(schedule, t, losses);
  };
  const double once = std::pow(period_contraction(many), 1.0 / kPeriods);
  return 1 - (1 - once) / schedule.period;
}

double lasting_rho(const Schedule& schedule, int local_steps, int global_average) {
  constexpr int kNeverComes = 10'000;  // steps: what is left by then does not count
  check_argument("convergence", local_steps >= 1 && global_average >= 0,
                 "local steps must be 1 or more, and the distance of global averages not negative",
                 std::to_string(local_steps) + " and " + std::to_string(global_average));
  const double rho = lasting_rho(schedule);
  const bool is_exact = exact_average(schedule);
  const auto left = [&](int rounds) {
    if (is_exact) return rounds < observed_rounds(schedule) ? 1.0 : 0.0;
    return std::pow(rho, rounds);
  };
  double distance = 0;
  if (global_average == 0 || global_average > kNeverComes) {
    distance = local_steps * rho / (1 - rho) + (local_steps - 1) / 2.0;
  } else {
    // From step t to the global average, which is step `global_average` − 1.
    for (int t = 0; t < global_average; ++t) {
      int rounds = 0;
      for (int step = t; step < global_average - 1; ++step) {
        if ((step + 1) % local_steps == 0) ++rounds;
        distance += left(rounds) / global_average;
      }
    }
  }
  return std::isinf(distance) ? 1 : distance / (1 + distance);
}

MixingStrength mixing_strength(const Schedule& schedule) {
  return {.workers = schedule.shape.workers(), .rho = effective_rho(schedule)};
}

std::span<const TopologyOrder> published_topology_orders() { return kOrders; }

}  // namespace gossamer
