#pragma once
/// RowAverage: means of gradients that have few rows, as sparse embeddings make them.

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <map>
#include <vector>

#include "gossamer/torch/tensors/flat_average.h"

namespace gossamer {

/// Note [Means of rows]: every worker has other rows. First the workers agree on the rows that any
/// of them has, by the mean of a number per row; then they average these rows. A worker that has no
/// gradient, or a dense one, takes part in the same way.
class RowAverage {
 public:
  /// Of the gradients of these tensors.
  RowAverage(const Averagers& all, std::vector<at::Tensor> tensors, Codec codec);

  void launch_rows(std::int64_t pass);
  /// Waits for the rows.
  void launch_values(std::int64_t pass);
  /// Waits for the values. The means become the gradients: dense where they were, else sparse;
  /// unless `is_dropped`.
  void collect(bool is_dropped);

 private:
  struct Entry {
    at::Tensor tensor;
    at::Tensor rows;      ///< that this worker has, ascending
    at::Tensor values;    ///< of these rows, real
    at::Tensor all_rows;  ///< that any worker has, ascending
    std::int64_t at = 0;  ///< where they begin in the average of its dtype
  };

  void read_gradient(Entry& entry) const;
  at::Tensor values_of(const Entry& entry, const at::Tensor& flat) const;

  Averagers all_;
  Codec codec_;
  std::vector<Entry> entries_;
  FlatAverage rows_;
  std::map<DType, FlatAverage> values_;
};

}  // namespace gossamer
