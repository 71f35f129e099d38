#include "gossamer/torch/tensors/row_average.h"

#include <ATen/ATen.h>

#include <utility>

#include "gossamer/engine/tags.h"
#include "gossamer/torch/tensors/tensor_views.h"

namespace gossamer {
namespace {

std::int64_t row_count(const at::Tensor& tensor) { return tensor.size(0); }

/// Sizes of some rows of a tensor as real numbers.
std::vector<std::int64_t> real_sizes(const at::Tensor& tensor, std::int64_t rows) {
  auto sizes = tensor.sizes().vec();
  sizes[0] = rows;
  if (tensor.is_complex()) sizes.push_back(2);
  return sizes;
}

std::int64_t element_count(const std::vector<std::int64_t>& sizes) {
  std::int64_t product = 1;
  for (const std::int64_t size : sizes) product *= size;
  return product;
}

}  // namespace

RowAverage::RowAverage(const Averagers& all, std::vector<at::Tensor> tensors, Codec codec)
    : all_(all), codec_(codec) {
  for (at::Tensor& tensor : tensors) entries_.push_back({.tensor = std::move(tensor)});
}

void RowAverage::read_gradient(Entry& entry) const {
  const at::Tensor& gradient = entry.tensor.grad();
  const auto indices = at::dtype(at::kLong);
  at::Tensor values;
  if (!gradient.defined()) {
    entry.rows = at::empty({0}, indices);
    values = at::empty({0}, entry.tensor.options().requires_grad(false));
    values = values.view(std::vector<std::int64_t>(entry.tensor.sizes().size(), 0));
  } else if (gradient.layout() == at::kStrided) {
    entry.rows = at::arange(row_count(entry.tensor), indices);
    values = gradient.detach();
  } else if (gradient.sparse_dim() == 1) {
    const at::Tensor whole = gradient.detach().coalesce();
    entry.rows = whole.indices()[0];
    values = whole.values();
  } else {
    const at::Tensor whole = gradient.detach().coalesce();
    entry.rows = std::get<0>(at::_unique(whole.indices()[0]));
    values = whole.to_dense().index_select(0, entry.rows);
  }
  entry.values = as_real(values);
}

/// Where its rows are in the flat array of its dtype.
at::Tensor RowAverage::values_of(const Entry& entry, const at::Tensor& flat) const {
  const auto sizes = real_sizes(entry.tensor, entry.all_rows.numel());
  return flat.narrow(0, entry.at, element_count(sizes)).view(sizes);
}

void RowAverage::launch_rows(std::int64_t pass) {
  std::int64_t count = 0;
  for (const Entry& entry : entries_) count += row_count(entry.tensor);
  rows_ = FlatAverage(all_, DType::f32, count, Codec::fp32);  // a codec would lose some
  rows_.use(nullptr, nullptr);
  std::int64_t offset = 0;
  for (Entry& entry : entries_) {
    read_gradient(entry);
    const std::int64_t rows = row_count(entry.tensor);
    rows_.flat().narrow(0, offset, rows).index_fill_(0, entry.rows, 1.0);
    offset += rows;
  }
  rows_.launch(*all_.runner, {.pass = pass, .stream = stream::kRows});
}

void RowAverage::launch_values(std::int64_t pass) {
  rows_.wait();
  const at::Tensor marks = rows_.mean();
  rows_.finish();
  std::map<DType, std::int64_t> counts;
  std::int64_t offset = 0;
  for (Entry& entry : entries_) {
    const std::int64_t rows = row_count(entry.tensor);
    entry.all_rows = marks.narrow(0, offset, rows).nonzero().view({-1});
    offset += rows;
    std::int64_t& count = counts[mixing_dtype(entry.tensor)];
    entry.at = count;
    count += element_count(real_sizes(entry.tensor, entry.all_rows.numel()));
  }
  for (const auto& [dtype, count] : counts) {
    FlatAverage& average = values_[dtype] = FlatAverage(all_, dtype, count, codec_);
    average.use(nullptr, nullptr);
  }
  for (const Entry& entry : entries_) {
    if (entry.rows.numel() == 0) continue;
    const at::Tensor into = values_of(entry, values_.at(mixing_dtype(entry.tensor)).flat());
    const at::Tensor places = at::searchsorted(entry.all_rows, entry.rows);
    into.index_copy_(0, places, entry.values.to(into.scalar_type()));
  }
  std::int32_t own = stream::kRowValues;
  for (auto& [_, average] : values_) {
    average.launch(*all_.runner, {.pass = pass, .stream = own--});
  }
}

void RowAverage::collect(bool is_dropped) {
  std::map<DType, at::Tensor> means;
  for (auto& [dtype, average] : values_) {
    average.wait();
    means[dtype] = average.mean();
    average.finish();
  }
  for (Entry& entry : entries_) {
    if (is_dropped) continue;
    at::Tensor& gradient = entry.tensor.mutable_grad();
    at::Tensor values = values_of(entry, means.at(mixing_dtype(entry.tensor)));
    if (entry.tensor.is_complex()) values = at::view_as_complex(values);
    values = values.to(entry.tensor.scalar_type());
    if (gradient.defined() && gradient.layout() == at::kStrided) {
      gradient.detach().index_copy_(0, entry.all_rows, values);
    } else {
      gradient =
          at::_sparse_coo_tensor_unsafe(entry.all_rows.unsqueeze(0), values, entry.tensor.sizes(),
                                        values.options().layout(at::kSparse))
              ._coalesced_(true);
    }
  }
}

}  // namespace gossamer
