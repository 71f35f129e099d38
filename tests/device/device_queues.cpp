#include "tests/device/device_queues.h"

#include <stdexcept>

namespace test_device {

Queues& queues() {
  static Queues* const all = new Queues;  // tensors may outlive whatever is destroyed at the end
  return *all;
}

void Queues::seed(std::uint64_t seed) {
  run_everything();
  random_.seed(seed);
  streams_ = 0;
  left_out_.clear();
  sound_calls_.reset();
}

void Queues::begin_call() {
  if (!sound_calls_ || (*sound_calls_)-- > 0) return;
  sound_calls_.reset();
  throw std::runtime_error("the test device has failed, as it was told to");
}

void Queues::add(std::int64_t stream, Task task) {
  open_[stream].waiting.push_back(std::move(task));
}

void Queues::run(std::int64_t stream, std::int64_t position) {
  Stream& mine = open_[stream];
  while (mine.done < position && !mine.waiting.empty()) {
    const Task task = std::move(mine.waiting.front());
    mine.waiting.pop_front();
    ++mine.done;
    task();
  }
}

void Queues::run_everything() {
  for (auto& [stream, _] : open_) run_all(stream);
}

void Queues::run_some() {
  if (!left_out_.empty()) return;  // as late as can be
  for (auto& [stream, mine] : open_) {
    if (mine.waiting.empty() || random_() % 4 != 0) continue;
    const auto count = static_cast<std::int64_t>(1 + random_() % mine.waiting.size());
    run(stream, mine.done + count);
  }
}

std::int64_t Queues::done_or_queued(std::int64_t stream) {
  const Stream& mine = open_[stream];
  return mine.done + static_cast<std::int64_t>(mine.waiting.size());
}

Queues::Event Queues::record(std::int64_t stream) {
  const auto looks = static_cast<int>(random_() % static_cast<std::uint64_t>(most_looks_ + 1));
  return {stream, done_or_queued(stream), looks};
}

bool Queues::is_over(const Event& event) const {
  const auto found = open_.find(event.stream);
  return found == open_.end() || found->second.done >= event.position;
}

bool Queues::query(Event& event) {
  ++counts.queries;
  if (is_left_out(kHost, event)) return true;
  if (event.looks > 0) {
    --event.looks;
    run_some();
    return false;
  }
  run(event.stream, event.position);
  return true;
}

void Queues::wait(Event& event) {
  event.looks = 0;  // who has waited sees that it is over
  if (!is_over(event)) ++counts.host_waits;
  run(event.stream, event.position);
}

}  // namespace test_device
