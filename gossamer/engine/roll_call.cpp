#include "gossamer/engine/roll_call.h"

#include <algorithm>
#include <limits>

#include "gossamer/base/errors.h"
#include "gossamer/engine/tags.h"

namespace gossamer {
namespace {

constexpr std::chrono::hours kForEver{24 * 365};
constexpr std::chrono::milliseconds kBetweenLooks{5};

std::string described(int rank, const std::string& where, std::int64_t steps) {
  return "worker " + std::to_string(rank) + " in " + where + " after " + std::to_string(steps) +
         (steps == 1 ? " step" : " steps");
}

}  // namespace

RollCall::RollCall(Transport& transport, RollCallOptions options)
    : transport_(transport), options_(std::move(options)), rank_(transport.describe().rank) {
  expect();
}

RollCall::~RollCall() {
  for (const auto& slot : slots_) {
    if (slot->request != 0) transport_.release(slot->request);
  }
  for (const Sent& sent : sent_) transport_.release(sent.request);
}

/// Posts the receives of the current number.
void RollCall::expect() {
  for (const int peer : options_.peers) {
    auto slot = std::make_unique<Slot>();
    slot->peer = peer;
    slot->number = number_;
    const std::span<std::byte> landing = std::as_writable_bytes(std::span(&slot->landing, 1));
    const Tag tag{.step = number_, .stream = stream::kRollCall};
    slot->request = transport_.receive(peer, tag, landing, Deadline::max());
    slots_.push_back(std::move(slot));
  }
}

/// Takes note of what has come, and of what has left.
void RollCall::collect() {
  for (const auto& slot : slots_) {
    if (slot->request == 0) continue;
    const Status status = transport_.poll(slot->request);
    if (status.state == Status::State::pending) continue;
    slot->has_come = status.state == Status::State::done;
    if (slot->has_come) land(status, &slot->landing);
    transport_.release(slot->request);
    slot->request = 0;
  }
  std::erase_if(slots_,
                [&](const auto& slot) { return slot->number < number_ && slot->request == 0; });
  std::erase_if(sent_, [&](const Sent& sent) {
    if (transport_.poll(sent.request).state == Status::State::pending) return false;
    transport_.release(sent.request);
    return true;
  });
}

void RollCall::tell(const std::string& what, Progress progress, bool is_step) {
  what_ = what;
  came_at_ = Clock::now();
  has_reported_ = false;
  for (const int peer : options_.peers) {
    auto note = std::make_unique<Note>(
        Note{.steps = progress.steps, .passes = progress.passes, .is_step = is_step ? 1 : 0});
    what.copy(note->what, sizeof note->what - 1);
    const Tag tag{.step = number_, .stream = stream::kRollCall};
    const Request request = transport_.send(peer, tag, std::as_bytes(std::span(note.get(), 1)),
                                            Clock::now() + kForEver);
    sent_.push_back({request, std::move(note)});
  }
}

void RollCall::come_to(const std::string& what, Progress progress) {
  const std::lock_guard lock(mutex_);
  collect();
  tell(what, progress, false);
}

void RollCall::all_have_come() {
  const std::lock_guard lock(mutex_);
  what_.clear();
  ++number_;
  collect();
  expect();
}

void RollCall::look(Progress progress, bool in_step) {
  const std::lock_guard lock(mutex_);
  const auto now = Clock::now();
  if (now < next_look_) return;
  next_look_ = now + kBetweenLooks;
  collect();
  for (const auto& slot : slots_) {
    if (!slot->has_come || slot->number < number_) continue;
    const Note& note = slot->landing;
    const bool has_done_it = note.steps > progress.steps || note.passes > progress.passes;
    const bool never_comes = in_step && options_.compares_steps && !has_done_it;
    if (what_.empty() ? never_comes : note.is_step != 0) refuse(*slot, progress);
  }
  report_waiting();
}

void RollCall::refuse(const Slot& slot, Progress progress) {
  const std::string step = "step " + std::to_string(progress.steps + 1);
  const std::string here = what_.empty() ? step : what_;
  const std::string there = slot.landing.what;
  if (what_.empty()) tell(step, progress, true);
  fail_argument({.place = "Gossip",
                 .what = "all workers must come to " + (slot.landing.is_step ? here : there) +
                         " after equally many steps",
                 .got = described(rank_, here, progress.steps) + ", " +
                        described(slot.peer, there, slot.landing.steps),
                 .remedy = "call it on every worker; where they have unequal numbers of batches, "
                           "train inside of gossip.uneven()"});
}

void RollCall::report_waiting() {
  const std::chrono::duration<double> waited = Clock::now() - came_at_;
  const bool is_time = !what_.empty() && !has_reported_ && waited.count() > options_.patience_s;
  if (!is_time || !options_.report) return;
  std::vector<int> missing;
  for (const auto& slot : slots_) {
    if (slot->number == number_ && !slot->has_come) missing.push_back(slot->peer);
  }
  if (missing.empty()) return;
  has_reported_ = true;
  options_.report(missing, what_);
}

}  // namespace gossamer
