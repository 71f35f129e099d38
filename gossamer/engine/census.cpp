#include "gossamer/engine/census.h"

#include <utility>

#include "gossamer/transport/cut_off.h"

namespace gossamer {
namespace {

/// Beyond all numbers of collective calls.
constexpr std::int64_t kFirstCensus = std::int64_t{1} << 60;

}  // namespace

Census::Census(Transport& transport, Seating everybody, LostPeers& lost, Lookout& lookout,
               double timeout_s, const WhileWaiting& while_waiting)
    : council_(transport, everybody, lost, lookout, timeout_s, while_waiting, false),
      lost_(lost),
      everybody_(std::move(everybody)) {}

std::optional<Seating> Census::look(std::int64_t steps) {
  if (steps % kStepsOfACensus != 0) {
    look();
    return std::nullopt;
  }
  std::optional<Seating> counted;
  if (state_ != State::none) {
    council_.begin_wait();
    for (look(); state_ != State::over; look()) council_.wait();
    counted = council_.seating();
    tell_of_lost(*counted);
  }
  begun_ = steps;
  council_.at_step(steps);
  council_.open(kFirstCensus + steps);
  state_ = State::decides;
  look();
  return counted;
}

void Census::look() {
  council_.answer_late();
  if (state_ == State::decides && council_.decides()) {
    if (!council_.is_over()) council_.say_result();
    state_ = council_.is_over() ? State::over : State::ends;
  }
  if (state_ != State::ends) return;
  switch (council_.ends()) {
    case Council::End::open:
      return;
    case Council::End::all:
      state_ = State::over;
      return;
    case Council::End::again:
      council_.open(kFirstCensus + begun_);
      state_ = State::decides;
  }
}

/// The others may have noticed what this worker has not. Who is to come back is not lost again.
void Census::tell_of_lost(const Seating& counted) {
  for (int rank = 0; rank < everybody_.workers(); ++rank) {
    const bool was_there = !lost_.is_away(rank, begun_ - 1);
    if (was_there && !has_rank(counted, rank)) lost_.lose({rank, kLeftOut});
  }
}

}  // namespace gossamer
