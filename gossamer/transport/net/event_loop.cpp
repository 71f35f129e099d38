#include "gossamer/transport/net/event_loop.h"

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <bit>
#include <cerrno>
#include <cstring>

#include "gossamer/base/errors.h"

namespace gossamer {
namespace {

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

void EventLoop::start(std::function<void(Key)> hear, std::function<void()> beat) {
  on_news_ = std::move(hear);
  on_beat_ = std::move(beat);
  thread_ = std::jthread([this](const std::stop_token& stop) { run(stop); });
}

void EventLoop::stop() {
  if (!thread_.joinable()) return;
  thread_.request_stop();
  ::eventfd_write(wake_.get(), 1);
  thread_.join();
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

void EventLoop::run(const std::stop_token& stop) {
  std::array<epoll_event, 64> events = {};
  Deadline next_beat = Clock::now() + beat_;
  while (!stop.stop_requested()) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(next_beat - Clock::now());
    const int timeout = static_cast<int>(std::max<std::int64_t>(left.count(), 0));
    const int count = ::epoll_wait(epoll_.get(), events.data(), std::ssize(events), timeout);
    for (int i = 0; i < count && !stop.stop_requested(); ++i) {
      const Key key = key_of(events[static_cast<std::size_t>(i)]);
      if (key.kind != Kind::none) on_news_(key);
    }
    if (Clock::now() < next_beat) continue;
    on_beat_();
    next_beat = Clock::now() + beat_;
  }
}

}  // namespace gossamer
