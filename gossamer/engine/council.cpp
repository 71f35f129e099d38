#include "gossamer/engine/council.h"

#include <algorithm>
#include <numeric>
#include <span>
#include <tuple>
#include <utility>

#include "gossamer/base/errors.h"
#include "gossamer/base/index.h"
#include "gossamer/engine/tags.h"
#include "gossamer/transport/cut_off.h"
#include "gossamer/transport/late.h"

namespace gossamer {
namespace {

constexpr std::chrono::milliseconds kNapOfCouncil{5};
constexpr std::chrono::milliseconds kBetweenAnswers{10};
constexpr std::size_t kBits = 64;  // of a word

/// Of a round's messages: whom each has lost, and then that it has its result.
int losses_slot(int round) { return 2 * round; }
int result_slot(int round) { return 2 * round + 1; }
/// To those who begin a round of a call that is over.
int over_slot(int round) { return -1 - round; }

/// Where in Losses it stands that one has lost another one.
struct Bit {
  std::size_t word;
  std::uint64_t mask;
};
Bit bit_of(int by, int lost, int workers) {
  const std::size_t bit = at(by * workers + lost);
  return {bit / kBits, std::uint64_t{1} << (bit % kBits)};
}

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
      losses_((at(everybody_.workers() * everybody_.workers()) + kBits - 1) / kBits, 0) {}

Council::Message& Council::Message::operator=(Message&& other) noexcept {
  release();
  transport = other.transport;
  peer = other.peer;
  losses = std::move(other.losses);  // stays where it is in memory
  request = std::exchange(other.request, 0);
  has_come = other.has_come;
  has_ended = other.has_ended;
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
    if (is_away(peer)) continue;
    message.request =
        transport_.receive(peer, {call_, stream::kCouncil, slot},
                           std::as_writable_bytes(std::span(message.losses)), Deadline::max());
  }
  return heard;
}

Council::Message Council::to(int peer, std::int64_t call, int slot) {
  Message message(transport_, peer, losses_);
  if (is_away(peer)) return message;
  message.request = transport_.send(peer, {call, stream::kCouncil, slot},
                                    std::as_bytes(std::span(message.losses)), Deadline::max());
  return message;
}

Council::Messages Council::say(int slot) {
  Messages said;
  for (const int peer : peers_) said.push_back(to(peer, call_, slot));
  return said;
}

bool Council::has_lost(int by, int lost) const {
  const auto [word, mask] = bit_of(by, lost, everybody_.workers());
  return (losses_[word] & mask) != 0;
}

void Council::note(int by, int lost) {
  const auto [word, mask] = bit_of(by, lost, everybody_.workers());
  losses_[word] |= mask;
}

/// What it has lost, and who has lost it.
void Council::forget(int rank) {
  for (int other = 0; other < everybody_.workers(); ++other) {
    for (const auto [word, mask] :
         {bit_of(rank, other, everybody_.workers()), bit_of(other, rank, everybody_.workers())}) {
      losses_[word] &= ~mask;
    }
  }
}

/// One that has expelled this worker has lost it.
void Council::lose(int peer, const std::exception_ptr& error) {
  const Fault fault = fault_of(error);
  if (tells_ || fault != Fault::lost) lost_.pass_over(error, steps_);
  note(everybody_.rank(), peer);
  if (fault == Fault::expelled) note(peer, everybody_.rank());
}

/// Whether it is open no more; takes note of who is lost.
bool Council::collect(Message& message) {
  if (message.request == 0) return true;
  const Status status = transport_.poll(message.request);
  if (status.state == Status::State::pending) return false;
  message.has_come = status.state == Status::State::done;
  if (message.has_come && !status.payload.empty()) land(status, message.losses.data());
  message.has_ended = !message.has_come && fault_of(status.error) == Fault::lost;
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
    const int peer = peers_.empty() ? everybody_.rank() : peers_.front();
    fail_late(transport_, peer, "exchange", timeout_s_,
              "not all that are left have come to what all have to do");
  }
  transport_.progress(Clock::now() + kNapOfCouncil);
  lookout_.look();
  answer_late();
  if (while_waiting_) while_waiting_();
}

/// The ranks that are left, see Note [Who takes part]: as long as one of them has lost another one,
/// whoever is lost by the most goes; of those who has lost the most; of those the highest rank. So
/// one that has ended goes before those that it had lost, of two halves that have lost each other
/// the one with the lowest rank stays, and of two alone the lower one.
std::vector<int> Council::left() const {
  std::vector<int> ranks(at(everybody_.workers()));
  std::iota(ranks.begin(), ranks.end(), 0);
  if (std::ranges::all_of(losses_, [](std::uint64_t word) { return word == 0; })) return ranks;
  for (;;) {
    using Case = std::tuple<std::ptrdiff_t, std::ptrdiff_t, int>;
    Case worst{};
    for (const int rank : ranks) {
      const auto by =
          std::ranges::count_if(ranks, [&](int other) { return has_lost(other, rank); });
      const auto of =
          std::ranges::count_if(ranks, [&](int other) { return has_lost(rank, other); });
      worst = std::max(worst, Case{by, of, rank});
    }
    if (std::get<0>(worst) == 0) return ranks;
    std::erase(ranks, std::get<2>(worst));
  }
}

void Council::fail_left_out() const {
  int by = everybody_.rank();
  for (int rank = everybody_.workers(); rank-- > 0;) {
    if (has_lost(rank, everybody_.rank())) by = rank;
  }
  throw TransportError({.rank = everybody_.rank(),
                        .peer = by,
                        .operation = "",
                        .elapsed_s = 0,
                        .reason = "the others go on without this worker: its connection to this "
                                  "peer has ended, and one of both has to leave",
                        .fault = Fault::expelled});
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
  for (const int rank : lost_.came_back(steps_, steps)) forget(rank);
  steps_ = steps;
}

Seating Council::begin(std::int64_t call) {
  open(call);
  while (!decides()) wait();
  return seating();
}

void Council::open(std::int64_t call) {
  if (call != call_) {
    round_ = -1;
    has_result_ = false;
  }
  is_over_ = false;
  call_ = call;
  begin_wait();
  begin_round();
}

/// Also where it has ended in the middle of this call, and been let in to come back later: what is
/// expected of it now, nobody says.
bool Council::is_away(int rank) const {
  return rank != everybody_.rank() && lost_.is_away(rank, steps_ - 1);
}

void Council::begin_round() {
  ++round_;
  peers_.clear();
  const int own = everybody_.rank();
  for (int rank = 0; rank < everybody_.workers(); ++rank) {
    if (is_away(rank)) note(own, rank);
    if (rank != own && !has_lost(own, rank) && !has_lost(rank, own)) peers_.push_back(rank);
  }
  before_ = losses_;
  heard_ = std::exchange(next_, {});
  std::erase_if(heard_, [&](const Message& message) {
    return !std::ranges::binary_search(peers_, message.peer);
  });
  if (heard_.empty()) heard_ = expect(losses_slot(round_));
  said_ = say(losses_slot(round_));
  if (!has_result_) return;
  for (Message& message : expect(over_slot(round_))) overs_.push_back(std::move(message));
}

bool Council::decides() {
  for (;;) {
    if (hears_that_it_is_over()) return true;
    const bool has_heard = collect(heard_);
    if (!collect(said_) || !has_heard) return false;
    if (agree()) break;
    begin_round();
  }
  lookout_.look_now();  // whoever is cut off decides nothing
  peers_ = left();
  if (std::erase(peers_, everybody_.rank()) == 0) fail_left_out();
  leave_out_others();
  count_in(peers_, Standing::agreed);
  has_result_ = false;
  overs_.clear();
  next_ = expect(losses_slot(round_ + 1));
  return true;
}

/// Among those on whose number it depends who may go on, and this worker as well.
void Council::count_in(const std::vector<int>& peers, Standing standing) {
  transport_.count_in(everybody_.rank(), standing);
  for (const int peer : peers) transport_.count_in(peer, standing);
}

/// Once all that go on have said that they have lost them, they are out for good, whatever is lost
/// later.
void Council::leave_out_others() {
  const int own = everybody_.rank();
  for (int rank = 0; rank < everybody_.workers(); ++rank) {
    if (rank == own || std::ranges::binary_search(peers_, rank)) continue;
    note(own, rank);
    if (lost_.is_away(rank, steps_ - 1)) continue;
    transport_.leave_out(rank);
    if (tells_) lost_.lose({rank, kLeftOut});
  }
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
    for (std::size_t k = 0; k < losses_.size(); ++k) losses_[k] |= message.losses[k];
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
  has_result_ = true;
  result_peers_ = peers_;
  heard_ = expect(result_slot(round_));
  said_ = say(result_slot(round_));
}

Council::End Council::ends() {
  const bool has_heard = collect(heard_);
  if (!collect(said_) || !has_heard) {
    return hears_of_another_round(heard_) ? End::again : End::open;
  }
  const auto is_over_there = [](const Message& message) {
    return message.has_come || message.has_ended;
  };
  if (!std::ranges::all_of(heard_, is_over_there)) return End::again;
  count_in(result_peers_, Standing::counted);
  keep_answering(call_, round_ + 1, std::exchange(next_, {}));
  return End::all;
}

void Council::keep_answering(std::int64_t call, int round, Messages unasked) {
  kept_call_ = call;
  kept_round_ = round;
  kept_ = std::move(unasked);
  answers_.clear();  // of calls before this one, which all have left
  next_answers_ = {};
  answer_late();
}

void Council::answer_late() {
  if (kept_.empty() || Clock::now() < next_answers_) return;
  next_answers_ = Clock::now() + kBetweenAnswers;
  for (Message& message : kept_) {
    if (message.request == 0 && !message.has_come) continue;
    if (message.request != 0) {
      const Status status = transport_.poll(message.request);
      if (status.state == Status::State::pending) continue;
      message.has_come = status.state == Status::State::done;
      message.release();
    }
    if (std::exchange(message.has_come, false)) {
      answers_.push_back(to(message.peer, kept_call_, over_slot(kept_round_)));
    }
  }
}

/// Somebody has left the call, since all had their result. Those who have begun this round, too,
/// hear it from this worker.
bool Council::hears_that_it_is_over() {
  for (Message& message : overs_) {
    if (message.request == 0) continue;
    const Status status = transport_.poll(message.request);
    if (status.state == Status::State::pending) continue;
    message.has_come = status.state == Status::State::done;
    message.release();
    is_over_ = is_over_ || message.has_come;
  }
  if (!is_over_) return false;
  peers_ = result_peers_;
  count_in(peers_, Standing::counted);
  overs_.clear();
  keep_answering(call_, round_, std::exchange(heard_, {}));
  return true;
}

}  // namespace gossamer
