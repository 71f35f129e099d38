#include "gossamer/engine/admission.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace gossamer {
namespace {

/// Who is there may have begun so many steps more than it has done.
constexpr std::int64_t kBegun = 2;
/// Of the most steps in a span so much counts after the next one.
constexpr double kRemembered = 0.98;

}  // namespace

void Pace::look(std::int64_t steps, Clock::time_point now) {
  if (before_ < 0 || now >= begin_ + kSpan) {
    most_ = std::max(most_ * kRemembered, static_cast<double>(in_it_));
    begin_ = now;
    before_ = steps;
  }
  in_it_ = steps - before_;
}

std::int64_t Pace::most() const {
  return std::max(static_cast<std::int64_t>(std::ceil(most_)), in_it_);
}

std::uint64_t Admission::there_without(int guest) const {
  if (!there_) return 0;
  std::vector<int> ranks = there_();
  std::erase(ranks, guest);
  return code_of(ranks);
}

void Admission::look(std::int64_t steps) {
  pace_.look(steps, Clock::now());
  reception_->look([&](Guest& guest) {
    const std::uint64_t there = there_without(guest.who.peer);
    switch (guest.question.kind) {
      case AdmissionWord::Kind::coming:
      case AdmissionWord::Kind::where:
        return reception_->answer(guest, {.kind = AdmissionWord::Kind::where,
                                          .steps = steps,
                                          .most = pace_.most(),
                                          .there = there});
      case AdmissionWord::Kind::state:
        guest.waits_for_state = true;
        return;
      case AdmissionWord::Kind::begin: {
        const bool is_yes =
            guest.question.steps >= steps + kBegun && are_equal(there, guest.question.there);
        if (is_yes) {
          transport_.let_in(guest.who);
          if (!agrees_) transport_.count_in(guest.who.peer, Standing::counted);
          lost_.come_back(guest.who.peer, guest.question.steps);
        }
        return reception_->answer(guest, {.kind = AdmissionWord::Kind::begin,
                                          .is_yes = is_yes ? 1 : 0,
                                          .steps = steps,
                                          .there = there});
      }
    }
  });
}

std::vector<int> Admission::waiting_for_state() {
  std::vector<int> peers;
  for (const Guest& guest : reception_->guests()) {
    if (guest.waits_for_state && !guest.is_lost) peers.push_back(guest.who.peer);
  }
  return peers;
}

void Admission::give_state(int peer, std::int64_t steps, std::string state) {
  for (Guest& guest : reception_->guests()) {
    if (guest.who.peer != peer || !guest.waits_for_state || guest.is_lost) continue;
    guest.waits_for_state = false;
    const AdmissionWord word{.kind = AdmissionWord::Kind::state,
                             .is_yes = state.empty() ? 0 : 1,
                             .steps = steps,
                             .bytes = std::ssize(state)};
    reception_->answer(guest, word, std::move(state));
  }
}

}  // namespace gossamer
