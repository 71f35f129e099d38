#include "gossamer/transport/bell.h"

#include <utility>

namespace gossamer {
namespace {

// Threads come and go; forgetting them all costs each one return without news.
constexpr std::size_t kThreadsRemembered = 256;

}  // namespace

void Bell::ring() {
  {
    const std::lock_guard lock(mutex_);
    ++rings_;
  }
  rung_.notify_all();
}

bool Bell::wait(Deadline until) {
  std::unique_lock lock(mutex_);
  const std::uint64_t before = heard();
  const bool news = rung_.wait_until(lock, until, [&] { return rings_ != before; });
  heard() = rings_;
  return news;
}

bool Bell::has_rung() {
  const std::lock_guard lock(mutex_);
  return std::exchange(heard(), rings_) != rings_;
}

/// The last ring that this thread has heard.
std::uint64_t& Bell::heard() {
  if (heard_.size() > kThreadsRemembered) heard_.clear();
  return heard_[std::this_thread::get_id()];
}

}  // namespace gossamer
