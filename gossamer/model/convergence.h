#pragma once
/// How many steps decentralized SGD needs until it keeps up with parallel SGD: transient
/// iterations.

#include <array>
#include <span>
#include <string_view>

#include "gossamer/graph/schedule.h"
#include "gossamer/model/order.h"

namespace gossamer {

enum class TransientMethod {
  d_sgd,
  exact_diffusion,
  global_average,  ///< PGA: D-SGD with a global average every H steps
};

enum class Curvature { strongly_convex, generally_convex, non_convex };

/// iid: all workers' data come from one distribution. non_iid: they differ.
enum class DataSplit { iid, non_iid };

std::string_view name_of(TransientMethod method);
std::string_view name_of(Curvature curvature);
std::string_view name_of(DataSplit data);

/// Note [Transient iterations]: T = n^a ρ^b / (1 − ρ)^c · H^d, the step from which on the term that
/// decentralization adds to the error is no larger than the error of parallel SGD with n workers.
/// From the tables of the lecture "Decentralized SGD and its variants" and the rates they follow
/// from. Orders, without constants and logarithms: good for ratios between topologies, sizes and
/// methods, not for numbers of steps. Where the lecture prints a strongly convex row without ρ²
/// (D-SGD, iid), the rate it gives has it, and so has the row here.
struct TransientRow {
  TransientMethod method = TransientMethod::d_sgd;
  Curvature curvature = Curvature::non_convex;
  DataSplit data = DataSplit::iid;
  int workers_power = 0;  ///< a, of n
  int rho_power = 0;      ///< b
  int gap_power = 0;      ///< c, of 1/(1 − ρ)
  int period_power = 0;   ///< d, of H
};

/// All rows.
std::span<const TransientRow> transient_rows();

/// The row; null where no such result is known (Exact-Diffusion for non-convex losses has the
/// dependence on the data removed, but no better one on the network; PGA is analysed there only).
const TransientRow* find_transient_row(TransientMethod method, Curvature curvature, DataSplit data);

/// The row's T as a product.
std::array<Factor, 4> factors_of(const TransientRow& row);

/// What a row is evaluated at.
struct MixingStrength {
  int workers = 1;
  double rho = 0;
  int global_average_every = 1;  ///< H, of global_average only
};

/// Throws std::invalid_argument, which begins with `place`, unless n ≥ 1, 0 ≤ ρ ≤ 1 and H ≥ 1.
void check_mixing(std::string_view place, const MixingStrength& mixing);

/// n, ρ, 1 − ρ, log₂ n and H; the others are 1.
SymbolValues symbol_values(const MixingStrength& mixing);

/// The row's T: infinity for ρ = 1 unless the gap does not count, 0 for ρ = 0. Throws
/// std::invalid_argument unless n ≥ 1, 0 ≤ ρ ≤ 1 and H ≥ 1.
double transient_iterations(const TransientRow& row, const MixingStrength& mixing);

/// ρ of a static graph with the same bound on accumulated disagreement: 1 − (1 − c)/τ where a
/// period of τ rounds contracts by c. (Rounds never expand, so what a step leaves behind sums up to
/// at most τ(1 + c + c² + …) = τ/(1 − c), against 1/(1 − ρ).) ρ itself for τ = 1; for exact
/// averages after τ rounds 1 − 1/τ, which gives the lecture's n³ log²n of one-peer exponential
/// graphs, where ρ of a single round is 1 and says nothing.
double effective_rho(const Schedule& schedule);

/// The same with the contraction that a period comes to in the long run, the eighth root of that of
/// eight of them, instead of that of one: less where disagreement that is left is of another form
/// than that which a period is worst at (one-peer ring: cos²(2π/n) instead of cos(2π/n)).
double lasting_rho(const Schedule& schedule);

/// That of the schedule with local steps and global averages (graph/modifiers.h) on top; H = 1 and
/// 0 leave them out. d/(1 + d) with d = Σ_k ‖W_{t+k−1} … W_t − J‖ averaged over t, what a
/// disagreement leaves behind in all; for a static graph d = ρ/(1 − ρ). A period as a whole would
/// not do: a global average ends it, however far it is away, and can only lessen what is left. k
/// rounds of the schedule leave ρ^k with its lasting ρ; all up to the period where that is exact.
double lasting_rho(const Schedule& schedule, int local_steps, int global_average);

/// Workers and effective ρ of a schedule.
MixingStrength mixing_strength(const Schedule& schedule);

/// A row of the lecture's comparison of topologies (D-SGD, iid): T = n^a log₂^b n, as printed. The
/// rows of star and grid are loose: the formula of d_sgd gives n⁵ for both. One-peer exponential is
/// printed as n³ log², which is also what its period gives; the rate printed beside it, with
/// log^(2/3) n, would give n³ log⁴.
struct TopologyOrder {
  std::string_view topology;
  int workers_power = 0;
  int log_power = 0;
  std::string_view communication;  ///< per step, the order as printed; ~1: up to logarithms
};
std::array<Factor, 2> factors_of(const TopologyOrder& order);

std::span<const TopologyOrder> published_topology_orders();

}  // namespace gossamer
