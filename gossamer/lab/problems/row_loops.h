#pragma once
/// Products with rows of samples, for the best instruction set of this machine.

#include <cstddef>

namespace gossamer {

/// Rows in single precision, everything else in double. All instruction sets give the same bits:
/// sums have eight lanes, and multiply-adds are two operations.
struct RowLoops {
  /// sums[k] ← rows[k] · vectors[k], of d numbers each.
  void (*dots)(const float* const* rows, const double* const* vectors, std::size_t count,
               std::size_t d, double* sums);
  /// to[k] += scales[k] · rows[k]. Several of `to` may be the same.
  void (*add)(const float* const* rows, const double* scales, std::size_t count, std::size_t d,
              double* const* to);
  /// to[k] ← share · vectors[k] + scales[k] · rows[k].
  void (*set)(const float* const* rows, const double* scales, const double* const* vectors,
              double share, std::size_t count, std::size_t d, double* const* to);
};

/// Of active_isa().
const RowLoops& row_loops();

}  // namespace gossamer
