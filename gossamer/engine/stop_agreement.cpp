#include "gossamer/engine/stop_agreement.h"

#include <algorithm>
#include <chrono>
#include <exception>

#include "gossamer/engine/stop_along_tree.h"
#include "gossamer/engine/stop_among_left.h"

namespace gossamer {
namespace {

constexpr std::chrono::milliseconds kLookAgain{5};

std::unique_ptr<StopTalk> talk_over(Transport& transport, Lost lost) {
  if (lost == Lost::go_on) return std::make_unique<StopAmongLeft>(transport);
  return std::make_unique<StopAlongTree>(transport);
}

}  // namespace

StopAgreement::StopAgreement(Transport& transport, std::int64_t done, Lost lost)
    : transport_(transport), talk_(talk_over(transport, lost)), bid_(done) {}

void StopAgreement::hear(int told) {
  const int heard = talk_->hear();
  if (signal_ != 0 || (told == 0 && heard == 0)) return;
  signal_ = told != 0 ? told : heard;
  talk_->begin(bid_, signal_);
}

void StopAgreement::look(int told) {
  const std::lock_guard lock(mutex_);
  hear(told);
}

/// Nothing while it is not known whether the `done` steps are the last.
std::optional<bool> StopAgreement::ask(std::int64_t done, int told) {
  const std::lock_guard lock(mutex_);
  if (signal_ == 0) bid_ = std::max(bid_, done);
  hear(told);
  if (const auto last = talk_->last_step()) return done >= *last;
  if (signal_ == 0) bid_ = done + 1;
  if (done < bid_) return false;
  if (const auto lost = talk_->lost()) std::rethrow_exception(lost);
  return std::nullopt;
}

bool StopAgreement::is_last(std::int64_t done, int told, const WhileWaiting& while_waiting) {
  for (;;) {
    if (const auto known = ask(done, told)) return *known;
    transport_.progress(Clock::now() + kLookAgain);
    if (while_waiting) while_waiting();
  }
}

int StopAgreement::signal() const {
  const std::lock_guard lock(mutex_);
  return signal_;
}

}  // namespace gossamer
