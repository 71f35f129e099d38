#include "gossamer/torch/tensors/flat_average.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "gossamer/engine/elements.h"
#include "gossamer/torch/tensors/tensor_types.h"

namespace gossamer {
namespace {

/// Over all workers the means are all-reduce's, the same bits everywhere; by rounds they are
/// gossip's, which keep the mean over the workers whatever the codec.
EngineOptions options_of(const Averagers& all, Codec codec) {
  EngineOptions options;
  options.schedule = all.rounds ? *all.rounds : complete_schedule(all.seating.shape);
  options.pattern = all.rounds ? "cwa" : "allreduce";
  options.codec = codec;
  return options;
}

/// Whether what is mixed or sent comes from the payload itself.
bool reads_payload(const Plan& plan) {
  const auto takes_own = [](const Piece& piece) { return piece.self_weight != 0; };
  return !codes_payload_only(plan) || std::ranges::any_of(plan.pieces, takes_own);
}

}  // namespace

FlatAverage::FlatAverage(const Averagers& all, DType dtype, std::int64_t count, Codec codec)
    : dtype_(dtype), count_(count), codec_(codec), lost_(all.lost) {
  reseat(all);
}

void FlatAverage::reseat(const Averagers& all) {
  const EngineOptions options = options_of(all, codec_);
  const Seating everybody{options.schedule.shape, all.seating.rank()};
  plans_ = std::make_shared<PlanBook>(options, all.rounds ? everybody : all.seating);
  plans_->reseat(options, all.seating, 0);
  const auto plans = plans_->plans_for(count_);
  is_only_coded_ = !plans.empty() && lost_ == nullptr;  // else its own may be all that there is
  for (const Plan* plan : plans) {
    scratch_bytes_ = std::max(scratch_bytes_, Arena::bytes_for(*plan, dtype_));
    is_only_coded_ = is_only_coded_ && !reads_payload(*plan);
  }
}

void FlatAverage::use(const std::shared_ptr<const SharedMemory>& shared, std::byte* memory,
                      bool pins) {
  shared_ = shared;
  const auto options = at::dtype(to_scalar_type(dtype_));
  if (!shared) {
    flat_ = at::zeros({count_}, options.pinned_memory(pins));
    return;
  }
  flat_ = at::from_blob(memory, {count_}, [keeps = shared](void*) {}, options);
  if (scratch_bytes_ > 0) arena_.use(shared, {memory + flat_bytes(), scratch_bytes_});
}

void FlatAverage::wait_back() {
  if (exchange_) exchange_->wait_all_back();
}

void FlatAverage::wait_until_given(Deadline deadline) {
  if (exchange_ && !is_under_way_) exchange_->wait_until_given(deadline);
}

void FlatAverage::launch(ExchangeRunner& runner, const Launch& launch, PayloadRef when) {
  std::optional<std::int64_t> recorded_step;
  Recorder* const recorder = launch.recorder;
  if (recorder != nullptr) recorded_step = recorder->step();  // of which there may be fewer
  when.data = flat_.const_data_ptr();
  when.owner = shared_;
  auto plan = plans_->plan_for(launch.round, count_);
  exchange_ = runner.launch({.plan = plan.get(),
                             .dtype = dtype_,
                             .arena = &arena_,
                             .step = launch.pass,
                             .stream = launch.stream,
                             .recorder = recorder,
                             .recorded_step = recorded_step,
                             .lost = lost_,
                             .steps_before = launch.steps_before},
                            when);
  plan_ = std::move(plan);
  is_under_way_ = true;
}

void FlatAverage::wait() {
  is_under_way_ = false;
  exchange_->wait();
  pieces_ = pieces_left(*plan_, exchange_->is_spoiled(), exchange_->missing());
}

void FlatAverage::make_again(Collectives& collectives, std::int32_t stream,
                             const ReplicaShare& share) {
  const at::Tensor own = share.counts ? flat_ : at::zeros_like(flat_);
  again_ = at::empty({count_}, at::dtype(to_scalar_type(dtype_)));
  collectives.mean_among_those_left(dtype_, own.const_data_ptr(), again_.mutable_data_ptr(), count_,
                                    stream);
  if (share.scale != 1) again_.mul_(share.scale);
}

void FlatAverage::read(std::int64_t begin, std::int64_t count, void* into) const {
  if (again_.defined()) {
    return elements::copy(dtype_, into, elements::address(dtype_, again_.const_data_ptr(), begin),
                          count);
  }
  for (const Piece& piece : pieces_) {
    const std::int64_t first = std::max(begin, piece.offset);
    const std::int64_t last = std::min(begin + count, piece.offset + piece.count);
    if (first >= last) continue;
    mix(piece, first - piece.offset, last - first, elements::address(dtype_, into, first - begin));
  }
}

/// `count` of the piece's elements, from `first` on.
void FlatAverage::mix(const Piece& piece, std::int64_t first, std::int64_t count,
                      std::byte* into) const {
  const auto is_finished = [&](const Term& term) {
    return term.weight == 1 && !is_coded(*plan_, term.slice);
  };
  if (piece.self_weight == 0 && piece.terms.size() == 1 && is_finished(piece.terms[0])) {
    const std::byte* const mean = exchange_->at(piece.terms[0].slice);
    return elements::copy(dtype_, into, elements::address(dtype_, mean, first), count);
  }
  const at::Tensor mixed = at::from_blob(into, {count}, at::dtype(to_scalar_type(dtype_)));
  mixed.copy_(flat_.narrow(0, piece.offset + first, count)).mul_(piece.self_weight);
  for (const Term& term : piece.terms) mixed.add_(values_of(term, first, count), term.weight);
}

/// Where they are, or decoded.
at::Tensor FlatAverage::values_of(const Term& term, std::int64_t first, std::int64_t count) const {
  const auto options = at::dtype(to_scalar_type(dtype_));
  const std::byte* const data = exchange_->at(term.slice);
  if (!is_coded(*plan_, term.slice)) {
    const std::byte* const there = elements::address(dtype_, data, first);
    return at::from_blob(const_cast<std::byte*>(there), {count}, options);  // is only read
  }
  at::Tensor decoded = at::empty({count}, options);
  elements::decode(dtype_, decoded.mutable_data_ptr(), count,
                   {.codec = plan_->codec,
                    .coded = {data, coded_bytes(plan_->codec, term.slice.count)},
                    .offset = first});
  return decoded;
}

at::Tensor FlatAverage::mean() const {
  at::Tensor all = at::empty({count_}, at::dtype(to_scalar_type(dtype_)));
  read(0, count_, all.mutable_data_ptr());
  return all;
}

void FlatAverage::finish() {
  exchange_->finish();
  again_ = at::Tensor();
}

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
