#pragma once
/// Executes the Plans of all workers at once in plain memory: the oracle for every real transport.

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "gossamer/exchange/plan.h"

namespace gossamer {

/// Stands for a codec: what becomes of an element.
using Rounding = std::function<double(double)>;

/// Runs plans[i] on payloads[i] for all i, in double precision, and returns for every worker
/// self_weight · x + Σ terms over its pieces. Throws std::logic_error when a receive has no send of
/// the same size, a send has no receive, or a slice leaves its buffer. Coded elements are what
/// `rounding` makes of them.
std::vector<std::vector<double>> interpret(std::span<const Plan> plans,
                                           const std::vector<std::vector<double>>& payloads,
                                           const Rounding& rounding = std::identity());

}  // namespace gossamer
