#include "gossamer/torch/tensors/flat_average.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>

#include "gossamer/torch/tensors/tensor_types.h"

namespace gossamer {

FlatAverage::FlatAverage(const Averagers& all, DType dtype, std::int64_t count, Codec codec)
    : dtype_(dtype),
      count_(count),
      plan_(compile(complete_round(all.seating.workers()), all.seating, count,
                    {.finished_averages = true, .codec = codec})) {}

void FlatAverage::use(const std::shared_ptr<const SharedMemory>& shared, std::byte* memory,
                      bool pins) {
  shared_ = shared;
  const auto options = at::dtype(to_scalar_type(dtype_));
  if (!shared) {
    flat_ = at::zeros({count_}, options.pinned_memory(pins));
    return;
  }
  flat_ = at::from_blob(memory, {count_}, [keeps = shared](void*) {}, options);
  arena_.use(shared, {memory + flat_bytes(), Arena::bytes_for(plan_, dtype_)});
}

void FlatAverage::wait_back() {
  if (exchange_) exchange_->wait_all_back();
}

void FlatAverage::launch(ExchangeRunner& runner, std::int64_t pass, std::int32_t stream,
                         Recorder* recorder, PayloadRef when) {
  std::optional<std::int64_t> recorded_step;
  if (recorder != nullptr) recorded_step = recorder->step();  // of which there may be fewer
  when.data = flat_.const_data_ptr();
  when.owner = shared_;
  exchange_ = runner.launch({.plan = &plan_,
                             .dtype = dtype_,
                             .arena = &arena_,
                             .step = pass,
                             .stream = stream,
                             .recorder = recorder,
                             .recorded_step = recorded_step},
                            when);
  is_under_way_ = true;
}

void FlatAverage::wait() {
  is_under_way_ = false;
  exchange_->wait();
}

void FlatAverage::read(std::int64_t begin, std::int64_t count, void* into) const {
  const std::size_t element = size_of(dtype_);
  for (const Piece& piece : plan_.pieces) {
    const std::int64_t first = std::max(begin, piece.offset);
    const std::int64_t last = std::min(begin + count, piece.offset + piece.count);
    if (first >= last) continue;
    const Slice own{0, piece.offset, piece.count};  // alone: the mean is what was sent
    const std::byte* mean = exchange_->at(piece.terms.empty() ? own : piece.terms[0].slice);
    std::memcpy(static_cast<std::byte*>(into) + static_cast<std::size_t>(first - begin) * element,
                mean + static_cast<std::size_t>(first - piece.offset) * element,
                static_cast<std::size_t>(last - first) * element);
  }
}

at::Tensor FlatAverage::mean() const {
  at::Tensor all = at::empty({count_}, at::dtype(to_scalar_type(dtype_)));
  read(0, count_, all.mutable_data_ptr());
  return all;
}

void FlatAverage::finish() { exchange_->finish(); }

std::span<std::byte> place(std::span<FlatAverage* const> averages, const Transport& transport,
                           bool pins) {
  std::size_t bytes = 0;
  for (const FlatAverage* average : averages) bytes += average->bytes();
  const auto shared = shared_memory_for(transport.describe().lends, bytes);
  std::byte* begin = shared ? shared->data() : nullptr;
  for (FlatAverage* average : averages) {
    average->use(shared, begin, pins);
    if (shared) begin += average->bytes();
  }
  return shared ? std::span(shared->data(), bytes) : std::span<std::byte>();
}

}  // namespace gossamer
