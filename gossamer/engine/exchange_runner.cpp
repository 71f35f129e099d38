#include "gossamer/engine/exchange_runner.h"

#include <algorithm>
#include <utility>

#include "gossamer/base/simulated_time.h"
#include "gossamer/base/timeout.h"

namespace gossamer {
namespace {

// A device wakes nobody: it is asked, less often the longer it takes.
constexpr std::chrono::microseconds kShortestDeviceNap{100};
constexpr std::chrono::microseconds kLongestDeviceNap{2000};

}  // namespace

ExchangeRunner::ExchangeRunner(Transport& transport, double timeout_s, WhileWaiting while_waiting)
    : transport_(transport), timeout_s_(timeout_s), while_waiting_(std::move(while_waiting)) {
  check_timeout(timeout_s, "engine");
  if (SimulatedTime* simulated = SimulatedTime::of_this_thread()) {
    simulated->do_beside(this, [this] { advance_all(); });
  } else {
    thread_ = std::jthread([this](const std::stop_token& stop) { run(stop); });
  }
}

ExchangeRunner::~ExchangeRunner() {
  if (SimulatedTime* simulated = SimulatedTime::of_this_thread()) simulated->take_back(this);
}

std::shared_ptr<Exchange> ExchangeRunner::expect(const ExchangeSpec& spec) const {
  return std::make_shared<Exchange>(transport_, spec, while_waiting_);
}

void ExchangeRunner::start(const std::shared_ptr<Exchange>& exchange, const PayloadRef& payload) {
  exchange->start(payload, timeout_s_);
  if (exchange->needs_runner() || SimulatedTime::of_this_thread() != nullptr) {
    const std::lock_guard lock(mutex_);
    active_.push_back(exchange);  // before it sends, so that no event of it is missed
    launched_.notify_one();
  }
  exchange->advance();
}

std::shared_ptr<Exchange> ExchangeRunner::launch(const ExchangeSpec& spec,
                                                 const PayloadRef& payload) {
  auto exchange = expect(spec);
  start(exchange, payload);
  return exchange;
}

void ExchangeRunner::attend(std::function<void()> attend) {
  const std::lock_guard lock(mutex_);
  attend_ = std::move(attend);
  launched_.notify_one();
}

/// See Note [Simulated time].
void ExchangeRunner::advance_all() {
  if (attend_) attend_();
  std::erase_if(active_, [](const auto& exchange) { return exchange->advance(); });
}

void ExchangeRunner::run(const std::stop_token& stop) {
  std::vector<std::shared_ptr<Exchange>> active;
  std::function<void()> attend;
  std::chrono::microseconds nap = kShortestDeviceNap;
  for (;;) {
    {
      std::unique_lock lock(mutex_);
      std::erase_if(active_, [](const auto& exchange) { return exchange->ended(); });
      if (!launched_.wait(lock, stop, [&] { return !active_.empty() || attend_; })) return;
      active = active_;
      attend = attend_;
    }
    if (attend) attend();
    for (const auto& exchange : active) exchange->advance();
    const bool any_open = std::ranges::any_of(active, [](const auto& e) { return !e->ended(); });
    const bool looks_often =
        std::ranges::any_of(active, [](const auto& e) { return e->awaits_payload(); });
    active.clear();
    if (stop.stop_requested()) return;
    nap = looks_often ? std::min(2 * nap, kLongestDeviceNap) : kShortestDeviceNap;
    if (any_open || attend) {
      transport_.progress(Clock::now() + (looks_often ? Clock::duration(nap) : kLongestNap));
    }
  }
}

}  // namespace gossamer
