#include "gossamer/engine/stop_among_left.h"

#include <algorithm>
#include <chrono>
#include <span>
#include <utility>

#include "gossamer/base/errors.h"
#include "gossamer/base/index.h"
#include "gossamer/engine/tags.h"

namespace gossamer {
namespace {

constexpr std::int64_t kNotKnown = -1;
constexpr std::chrono::milliseconds kBetweenHearing{5};
constexpr std::chrono::milliseconds kBetweenTries{20};
constexpr std::chrono::seconds kLongestDelivery{2};

Tag tag_of_saying(std::size_t number) {
  return {.step = 0, .stream = stream::kStop, .slot = static_cast<std::int32_t>(number)};
}

}  // namespace

StopAmongLeft::StopAmongLeft(Transport& transport)
    : transport_(transport), rank_(transport.describe().rank) {
  const int workers = transport.describe().workers;
  known_.assign(at(2 + 2 * workers), 0);
  for (int rank = 0; rank < workers; ++rank) others_.push_back({.rank = rank});
  for (int rank = 0; rank < workers; ++rank) known_[bid_of(rank)] = kNotKnown;
  known_.back() = kNotKnown;
  hear();
}

StopAmongLeft::~StopAmongLeft() {
  try {
    deliver();
  } catch (...) {  // the transport has ended, and with it whoever waits
  }
  for (const Other& other : others_) transport_.release(other.receive);
  for (const Saying& saying : sayings_) {
    for (const Request send : saying.sends) transport_.release(send);
  }
}

std::size_t StopAmongLeft::bid_of(int rank) const { return at(1 + rank); }

std::size_t StopAmongLeft::gone(int rank) const { return at(1 + std::ssize(others_) + rank); }

std::optional<std::int64_t> StopAmongLeft::last_step() const {
  if (known_[gone(rank_)] != 0 || known_.back() == kNotKnown) return std::nullopt;
  return known_.back();
}

void StopAmongLeft::expect(Other& other) {
  other.landing.resize(known_.size());
  other.receive =
      transport_.receive(other.rank, tag_of_saying(other.said.size()),
                         std::as_writable_bytes(std::span(other.landing)), Deadline::max());
}

/// One that has ended is listened to again as a later generation, once it has been let in. Until
/// then each receive fails, and wakes whoever waits: were it posted each time, nobody would look at
/// what else comes.
void StopAmongLeft::hear(Other& other) {
  const std::uint64_t generation = transport_.generation(other.rank);
  if (other.receive == 0) {
    if (has_begun_ || (other.generation && generation <= *other.generation)) return;
    if (Clock::now() < other.next_try) return;
    other.next_try = Clock::now() + kBetweenTries;
    other.said.clear();
    expect(other);
  }
  Status status = transport_.poll(other.receive);
  for (; status.state == Status::State::done; status = transport_.poll(other.receive)) {
    land(status, reinterpret_cast<std::byte*>(other.landing.data()));
    transport_.release(std::exchange(other.receive, 0));
    other.said.push_back(other.landing);
    const bool counts = known_[gone(other.rank)] == 0;
    for (std::size_t k = 0; counts && k < known_.size(); ++k) {
      known_[k] = std::max(known_[k], other.landing[k]);
    }
    expect(other);
  }
  if (status.state == Status::State::pending) {
    other.generation = generation;
    return;
  }
  transport_.release(std::exchange(other.receive, 0));
  if (has_begun_) known_[gone(other.rank)] = 1;
}

/// A message that is released before it has left is taken back. So this waits until all others say
/// that they know the last step, too.
void StopAmongLeft::deliver() {
  const Deadline limit = Clock::now() + kLongestDelivery;
  const auto needs_nothing = [this](const Other& other) {
    if (other.rank == rank_ || other.receive == 0) return true;
    return !other.said.empty() && other.said.back().back() != kNotKnown;
  };
  while (last_step() && !std::ranges::all_of(others_, needs_nothing) && Clock::now() < limit) {
    transport_.progress(Clock::now() + kBetweenHearing);
    hear();
  }
}

int StopAmongLeft::hear() {
  for (Other& other : others_) {
    if (other.rank != rank_) hear(other);
  }
  if (has_begun_) {
    say();
    decide();
    say();
  }
  return static_cast<int>(known_[0]);
}

void StopAmongLeft::begin(std::int64_t bid, int signal) {
  has_begun_ = true;
  known_[0] = std::max(known_[0], std::int64_t{signal});
  known_[bid_of(rank_)] = bid;
  for (const Other& other : others_) {
    if (other.rank != rank_ && other.receive == 0) known_[gone(other.rank)] = 1;
  }
  hear();
}

/// Unless it has said as much, or the last step, after which nobody needs more.
void StopAmongLeft::say() {
  if (!sayings_.empty()) {
    const Known& said = sayings_.back().known;
    if (said == known_ || said.back() != kNotKnown) return;
  }
  const std::size_t number = sayings_.size();
  Saying& saying = sayings_.emplace_back(Saying{known_});
  for (const Other& other : others_) {
    if (other.rank == rank_ || other.receive == 0) continue;
    saying.sends.push_back(transport_.send(other.rank, tag_of_saying(number),
                                           std::as_bytes(std::span(saying.known)),
                                           Deadline::max()));
  }
}

/// That all are, of which it says that they have not gone.
bool StopAmongLeft::have_all_said(const Known& known) const {
  return std::ranges::all_of(others_, [&](const Other& other) {
    if (known[gone(other.rank)] != 0) return true;
    if (known[bid_of(other.rank)] == kNotKnown) return false;
    return other.rank == rank_ || std::ranges::find(other.said, known) != other.said.end();
  });
}

void StopAmongLeft::decide() {
  if (known_.back() != kNotKnown || known_[gone(rank_)] != 0) return;
  for (const Saying& saying : sayings_) {
    if (!have_all_said(saying.known)) continue;
    known_.back() = std::ranges::max(std::span(saying.known).subspan(1, others_.size()));
    return;
  }
}

std::exception_ptr StopAmongLeft::lost() const {
  if (known_[gone(rank_)] == 0) return nullptr;
  return std::make_exception_ptr(
      TransportError({.rank = rank_,
                      .peer = rank_,
                      .operation = "",
                      .elapsed_s = 0,
                      .reason = "the others stop without this worker, which one of them has lost",
                      .fault = Fault::expelled}));
}

}  // namespace gossamer
