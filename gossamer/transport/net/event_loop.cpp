#include "gossamer/transport/net/event_loop.h"

#include <poll.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <cstring>

#include "gossamer/base/errors.h"

namespace gossamer {
namespace {

// For how long a thread that has left is expected back.
constexpr std::chrono::milliseconds kExpected{1};
constexpr std::chrono::hours kLongestWait{1};
// Going to sleep and being woken costs about as much.
constexpr std::chrono::microseconds kAwake{50};
constexpr std::chrono::microseconds kSoon{200};

epoll_event event_of(EventLoop::Key key, bool writes) {
  epoll_event event = {};
  event.events = EPOLLIN | (writes ? static_cast<std::uint32_t>(EPOLLOUT) : 0U);
  event.data.u64 = (static_cast<std::uint64_t>(key.kind) << 32U) | key.number;
  return event;
}

EventLoop::Key key_of(const epoll_event& event) {
  return {static_cast<EventLoop::Kind>(event.data.u64 >> 32U),
          static_cast<std::uint32_t>(event.data.u64)};
}

}  // namespace

EventLoop::EventLoop(Clock::duration beat)
    : beat_(beat),
      epoll_(::epoll_create1(EPOLL_CLOEXEC)),
      wake_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  if (!epoll_ || !wake_) {
    fail_io({.place = "net", .what = "no descriptors are left", .got = std::strerror(errno)});
  }
  watch(wake_.get(), {}, false);
}

EventLoop::~EventLoop() { stop(); }

void EventLoop::start(std::function<void(Key)> handle, std::function<void()> beat) {
  on_event_ = std::move(handle);
  on_beat_ = std::move(beat);
  thread_ = std::jthread([this](const std::stop_token& stop) { run(stop); });
}

void EventLoop::stop() {
  if (!thread_.joinable()) return;
  {
    const Lock lock(turns_);
    thread_.request_stop();
  }
  turn_changed_.notify_all();
  ::eventfd_write(wake_.get(), 1);
  thread_.join();
}

bool EventLoop::enter() {
  Lock lock(turns_);
  if (entered_.load() != std::thread::id()) return false;
  entered_ = std::this_thread::get_id();
  ++entries_;
  if (handles_) ::eventfd_write(wake_.get(), 1);
  turn_changed_.wait(lock, [&] { return !handles_; });
  return true;
}

/// Where the last event came soon, stays awake for the next, but leaves the core to any other
/// thread that wants it.
void EventLoop::wait(Deadline until) {
  const Deadline sleep_at = std::min(until, Clock::now() + kAwake);
  bool any = false;
  while (came_soon_ && !any && Clock::now() < sleep_at) {
    any = handle_once(Clock::duration::zero());
    if (!any) std::this_thread::yield();
  }
  if (!any) handle_once(until - Clock::now());
}

void EventLoop::leave(bool hurry) {
  {
    const Lock lock(turns_);
    entered_ = std::thread::id();
    back_at_ = hurry ? Deadline() : Clock::now() + kExpected;
    if (!rests_ && !hurry) return;
  }
  turn_changed_.notify_all();
}

void EventLoop::wake() {
  const std::thread::id inside = entered_;
  if (inside == std::thread::id() || inside == std::this_thread::get_id()) return;
  ::eventfd_write(wake_.get(), 1);
}

void EventLoop::watch(int descriptor, Key key, bool writes) {
  const auto [entry, is_new] = watched_.try_emplace(descriptor, writes);
  if (!is_new && entry->second == writes) return;
  entry->second = writes;
  epoll_event event = event_of(key, writes);
  ::epoll_ctl(epoll_.get(), is_new ? EPOLL_CTL_ADD : EPOLL_CTL_MOD, descriptor, &event);
}

void EventLoop::forget(int descriptor) {
  if (watched_.erase(descriptor) > 0) {
    ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, descriptor, nullptr);
  }
}

void EventLoop::watch_process(int process, Key key) {
  if (process <= 0 || process == ::getpid() || processes_.contains(key.number)) return;
  Descriptor watched(static_cast<int>(::syscall(SYS_pidfd_open, process, 0)));
  if (!watched) return;
  epoll_event event = event_of(key, false);
  event.events |= EPOLLONESHOT;
  ::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, watched.get(), &event);
  processes_.emplace(key.number, std::move(watched));
}

bool EventLoop::has_process_ended(std::uint32_t number) const {
  const auto found = processes_.find(number);
  if (found == processes_.end()) return false;
  pollfd entry{.fd = found->second.get(), .events = POLLIN, .revents = 0};
  return ::poll(&entry, 1, 0) > 0;
}

/// Until no thread is inside or expected, or `limit`; false for the latter. A thread that stays for
/// long says so when it leaves; looking now and then is cheaper than to be told of short stays.
bool EventLoop::step_aside(Lock& lock, const std::stop_token& stop, Deadline limit) {
  std::uint64_t seen = 0;
  for (;;) {
    const Deadline now = Clock::now();
    const bool is_in = entered_.load() != std::thread::id();
    if (stop.stop_requested() || now >= limit) return false;
    if (!is_in && now >= back_at_) return true;
    rests_ = is_in && seen == entries_;
    seen = entries_;
    turn_changed_.wait_until(lock, rests_ ? limit : std::min(limit, now + kExpected));
    rests_ = false;
  }
}

/// Waits for events for so long at most; whether there was one.
bool EventLoop::handle_once(Clock::duration limit) {
  std::array<epoll_event, 64> events = {};
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(
      std::clamp<Clock::duration>(limit, {}, kLongestWait));
  const int timeout = static_cast<int>(left.count());
  const Deadline begin = Clock::now();
  const int count = ::epoll_wait(epoll_.get(), events.data(), std::ssize(events), timeout);
  if (timeout > 0) came_soon_ = Clock::now() - begin < kSoon;
  for (int i = 0; i < count; ++i) {
    const Key key = key_of(events[static_cast<std::size_t>(i)]);
    eventfd_t wakes = 0;
    if (key.kind == Kind::none) {
      ::eventfd_read(wake_.get(), &wakes);
    } else {
      on_event_(key);
    }
  }
  return count > 0;
}

void EventLoop::run(const std::stop_token& stop) {
  Deadline next_beat = Clock::now() + beat_;
  Lock lock(turns_);
  while (!stop.stop_requested()) {
    const bool may_handle = step_aside(lock, stop, next_beat);
    handles_ = may_handle;
    lock.unlock();
    if (may_handle) handle_once(next_beat - Clock::now());
    if (Clock::now() >= next_beat) {
      on_beat_();
      next_beat = Clock::now() + beat_;
    }
    lock.lock();
    handles_ = false;
    turn_changed_.notify_all();
  }
}

}  // namespace gossamer
