#include "gossamer/engine/council.h"

#include <algorithm>
#include <span>
#include <utility>

#include "gossamer/base/errors.h"
#include "gossamer/base/index.h"
#include "gossamer/engine/tags.h"

namespace gossamer {
namespace {

constexpr std::chrono::milliseconds kNapOfCouncil{5};

/// Of a round's messages: whom each has lost, and then that it has its result.
int losses_slot(int round) { return 2 * round; }
int result_slot(int round) { return 2 * round + 1; }

}  // namespace

Council::Council(Transport& transport, Seating everybody, LostPeers& lost, Lookout& lookout,
                 double timeout_s, WhileWaiting while_waiting, bool tells)
    : transport_(transport),
      everybody_(std::move(everybody)),
      lost_(lost),
      lookout_(lookout),
      timeout_s_(timeout_s),
      while_waiting_(std::move(while_waiting)),
      tells_(tells),
      losses_(at(everybody_.workers()), -1) {}

Council::Message& Council::Message::operator=(Message&& other) noexcept {
  release();
  transport = other.transport;
  peer = other.peer;
  losses = std::move(other.losses);  // stays where it is in memory
  request = std::exchange(other.request, 0);
  has_come = other.has_come;
  return *this;
}

void Council::Message::release() {
  if (request != 0) transport->release(std::exchange(request, 0));
}

/// Receives from all that take part in this round.
Council::Messages Council::expect(int slot) {
  Messages heard;
  for (const int peer : peers_) {
    Message& message = heard.emplace_back(transport_, peer, losses_);
    message.request =
        transport_.receive(peer, {call_, stream::kCouncil, slot},
                           std::as_writable_bytes(std::span(message.losses)), Deadline::max());
  }
  return heard;
}

Council::Messages Council::say(int slot) {
  Messages said;
  for (const int peer : peers_) {
    Message& message = said.emplace_back(transport_, peer, losses_);
    message.request = transport_.send(peer, {call_, stream::kCouncil, slot},
                                      std::as_bytes(std::span(message.losses)), Deadline::max());
  }
  return said;
}

bool Council::is_to_be_told(const std::exception_ptr& error) const {
  if (tells_) return true;
  try {
    std::rethrow_exception(error);
  } catch (const TransportError& failure) {
    return failure.details().fault != Fault::lost;
  }
}

void Council::lose(int peer, const std::exception_ptr& error) {
  if (is_to_be_told(error)) lost_.pass_over(error, steps_);
  std::int32_t& by = losses_[at(peer)];
  if (by < 0 || by > everybody_.rank()) by = everybody_.rank();
}

/// Whether it is open no more; takes note of who is lost.
bool Council::collect(Message& message) {
  if (message.request == 0) return true;
  const Status status = transport_.poll(message.request);
  if (status.state == Status::State::pending) return false;
  message.has_come = status.state == Status::State::done;
  if (message.has_come && !status.payload.empty()) land(status, message.losses.data());
  message.release();
  if (!message.has_come) lose(message.peer, status.error);
  return true;
}

/// The same of all.
bool Council::collect(Messages& messages) {
  bool is_all = true;
  for (Message& message : messages) is_all = collect(message) && is_all;
  return is_all;
}

void Council::wait() {
  if (Clock::now() > deadline_) {
    throw TransportError({.rank = everybody_.rank(),
                          .peer = peers_.empty() ? everybody_.rank() : peers_.front(),
                          .operation = "exchange",
                          .elapsed_s = timeout_s_,
                          .reason = "deadline passed; not all that are left have come to what all "
                                    "have to do",
                          .fault = Fault::late});
  }
  transport_.progress(Clock::now() + kNapOfCouncil);
  if (while_waiting_) while_waiting_();
}

/// The ranks that are left, see Note [Who takes part]. Equal on all that know the same losses.
std::vector<int> Council::left() const {
  const auto is_mutual = [&](int rank) {
    const int by = losses_[at(rank)];
    return by >= 0 && losses_[at(by)] == rank;
  };
  const auto is_out = [&](int rank) {
    const int by = losses_[at(rank)];
    return by >= 0 && (!is_mutual(rank) || by < rank);
  };
  std::vector<int> ranks;
  for (int rank = 0; rank < everybody_.workers(); ++rank) {
    if (!is_out(rank)) ranks.push_back(rank);
  }
  return ranks;
}

Seating Council::seating_of(const std::vector<int>& ranks) const {
  std::vector<int> per_host(everybody_.shape.workers_per_host.size(), 0);
  Seating seating;
  for (const int rank : ranks) {
    if (rank == everybody_.rank()) seating.position = static_cast<int>(std::ssize(seating.ranks));
    seating.ranks.push_back(rank);
    ++per_host[at(everybody_.shape.host_of(rank))];
  }
  std::erase(per_host, 0);
  seating.shape = HostShape{per_host};
  return seating;
}

void Council::at_step(std::int64_t steps) {
  for (const int rank : lost_.came_back(steps_, steps)) losses_[at(rank)] = -1;
  steps_ = steps;
}

Seating Council::begin(std::int64_t call) {
  open(call);
  while (!decides()) wait();
  return seating();
}

void Council::open(std::int64_t call) {
  if (call != call_) round_ = -1;
  call_ = call;
  begin_wait();
  for (int rank = 0; rank < everybody_.workers(); ++rank) {
    const bool is_away = rank != everybody_.rank() && lost_.is_away(rank, steps_ - 1);
    if (losses_[at(rank)] < 0 && is_away) losses_[at(rank)] = everybody_.rank();
  }
  begin_round();
}

void Council::begin_round() {
  ++round_;
  peers_ = left();
  if (std::erase(peers_, everybody_.rank()) == 0) {
    throw TransportError({.rank = everybody_.rank(),
                          .peer = losses_[at(everybody_.rank())],
                          .operation = "",
                          .elapsed_s = 0,
                          .reason = "the others go on without this worker: the connection to this "
                                    "peer has ended, and one of both has to leave",
                          .fault = Fault::expelled});
  }
  before_ = losses_;
  heard_ = std::exchange(next_, {});
  std::erase_if(heard_, [&](const Message& message) {
    return !std::ranges::binary_search(peers_, message.peer);
  });
  if (heard_.empty()) heard_ = expect(losses_slot(round_));
  said_ = say(losses_slot(round_));
}

bool Council::decides() {
  for (;;) {
    const bool has_heard = collect(heard_);
    if (!collect(said_) || !has_heard) return false;
    if (agree()) break;
    begin_round();
  }
  lookout_.look_now();  // whoever is cut off decides nothing
  next_ = expect(losses_slot(round_ + 1));
  return true;
}

Seating Council::seating() const {
  std::vector<int> ranks = peers_;
  ranks.insert(std::ranges::upper_bound(ranks, everybody_.rank()), everybody_.rank());
  return seating_of(ranks);
}

/// Whether all in the round have said the same; takes note of what they have said.
bool Council::agree() {
  bool agree = losses_ == before_;
  for (const Message& message : heard_) {
    if (!message.has_come) continue;
    agree = agree && message.losses == before_;
    for (std::size_t k = 0; k < losses_.size(); ++k) {
      const std::int32_t by = message.losses[k];
      if (by >= 0 && (losses_[k] < 0 || by < losses_[k])) losses_[k] = by;
    }
  }
  return agree;
}

/// Who has its result and then ends may have done all it had to do: if another round begins, it is
/// lost there.
bool Council::hears_of_another_round(const Messages& results) {
  for (Message& message : next_) {
    const auto result = std::ranges::find(results, message.peer, &Message::peer);
    const bool has_result = result != results.end() && result->has_come;
    const bool is_open = has_result && message.request != 0;
    if (is_open && transport_.poll(message.request).state == Status::State::failed) continue;
    collect(message);
  }
  return std::ranges::any_of(next_, &Message::has_come);
}

void Council::check() {
  if (hears_of_another_round({})) throw CallBegunAnew();
}

bool Council::end() {
  say_result();
  End found = ends();
  for (; found == End::open; found = ends()) wait();
  return found == End::all;
}

void Council::say_result() {
  heard_ = expect(result_slot(round_));
  said_ = say(result_slot(round_));
}

Council::End Council::ends() {
  const bool has_heard = collect(heard_);
  if (collect(said_) && has_heard) {  // all have theirs, and nobody begins another round
    next_.clear();
    return End::all;
  }
  return hears_of_another_round(heard_) ? End::again : End::open;
}

}  // namespace gossamer
