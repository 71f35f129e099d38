#include "gossamer/transport/wake_up.h"

#include <utility>

namespace gossamer {
namespace {

// Threads come and go; forgetting them all costs each one return without a reason.
constexpr std::size_t kThreadsRemembered = 256;

}  // namespace

void WakeUp::notify() {
  {
    const std::lock_guard lock(mutex_);
    ++notifications_;
  }
  notified_.notify_all();
}

bool WakeUp::wait(Deadline until) {
  std::unique_lock lock(mutex_);
  const std::uint64_t before = seen();
  const bool is_new = notified_.wait_until(lock, until, [&] { return notifications_ != before; });
  seen() = notifications_;
  return is_new;
}

bool WakeUp::take() {
  const std::lock_guard lock(mutex_);
  return std::exchange(seen(), notifications_) != notifications_;
}

/// The last notification that this thread has seen.
std::uint64_t& WakeUp::seen() {
  if (seen_.size() > kThreadsRemembered) seen_.clear();
  return seen_[std::this_thread::get_id()];
}

}  // namespace gossamer
