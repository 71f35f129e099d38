#include "gossamer/torch/c10d/link.h"

#include <chrono>
#include <string>
#include <utility>

namespace gossamer {
namespace {

constexpr std::chrono::milliseconds kWatchPeriod{100};

/// What Gloo says, without the place in its source before it and the advice after it.
std::string plain_words(const std::string& message) {
  std::size_t from = 0;
  if (message.starts_with('[')) {
    const std::size_t bracket = message.find("] ");
    if (bracket != std::string::npos) from = bracket + 2;
  }
  return message.substr(from, message.find(". ", from) - from);
}

}  // namespace

C10dLink::C10dLink(int rank, int peer, c10::intrusive_ptr<::c10d::Backend> group, int peer_rank,
                   std::shared_ptr<WakeUp> wake_up)
    : edge_(rank, peer, std::move(wake_up)), wire_(std::move(group), peer_rank) {}

void C10dLink::start(const std::shared_ptr<C10dLink>& link) {
  for (const auto work : {&C10dLink::write_frames, &C10dLink::read_frames}) {
    const std::lock_guard lock(link->mutex_);
    link->threads_.emplace_back([link, work] { link->run([&] { (*link.*work)(); }); });
    ++link->running_;
  }
}

template <class Work>
void C10dLink::run(Work work) {
  try {
    work();
  } catch (const std::exception& error) {
    break_off(error);
  }
  const std::lock_guard lock(mutex_);
  --running_;
  ended_.notify_all();
}

void C10dLink::write_frames() {
  while (edge_.await_frame()) {
    const std::span<std::byte> frame = wire_.claim();
    if (frame.empty()) return;
    const std::size_t bytes = edge_.take_frame(frame);
    if (bytes > 0) wire_.write(bytes);
  }
  wire_.flush();
}

void C10dLink::read_frames() {
  while (!edge_.peer_closed()) {
    const std::span<const std::byte> frame = wire_.read();
    if (frame.empty()) return;
    edge_.hand_over(frame);
  }
}

void C10dLink::break_off(const std::exception& error) {
  edge_.break_off("the link is broken: " + plain_words(error.what()));
  wire_.abort();
}

void C10dLink::check() {
  {
    const std::lock_guard lock(mutex_);
    if (running_ == 0) return;
  }
  try {
    wire_.check();
  } catch (const std::exception& error) {
    break_off(error);
  }
}

bool C10dLink::await_end(Deadline until) {
  std::unique_lock lock(mutex_);
  return ended_.wait_until(lock, until, [&] { return running_ == 0; });
}

void C10dLink::abort() {
  edge_.break_off("this worker's transport was destroyed");
  wire_.abort();
}

void C10dLink::finish(Deadline limit) {
  const bool ended = await_end(limit);
  for (std::thread& thread : threads_) ended ? thread.join() : thread.detach();
  threads_.clear();
}

C10dWatch::C10dWatch(std::vector<std::shared_ptr<C10dLink>> links)
    : thread_([links = std::move(links)](const std::stop_token& stop) {
        std::mutex mutex;
        std::condition_variable_any stopped;
        std::unique_lock lock(mutex);
        while (!stopped.wait_for(lock, stop, kWatchPeriod, [] { return false; }) &&
               !stop.stop_requested()) {
          for (const auto& link : links) link->check();
        }
      }) {}

}  // namespace gossamer
