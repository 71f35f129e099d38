#include "gossamer/base/clock.h"

#include <pthread.h>
#include <unistd.h>

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <stop_token>
#include <thread>
#include <utility>

#include "gossamer/base/simulated_time.h"

namespace gossamer {
namespace {

using Steady = std::chrono::steady_clock;

constexpr Clock::duration kTick = std::chrono::milliseconds(500);
constexpr Clock::duration kStandstill = std::chrono::seconds(3);

std::atomic<bool> is_watched = false;
std::atomic<Clock::rep> last_look = 0;  // by the system's clock, as all here
std::atomic<Clock::rep> stood_still = 0;
std::atomic<Clock::rep> went_on = 0;  // after the last time it stood still; 0: never
std::mutex looking;                   // guards writing of the above

Clock::rep steady_now() { return Clock::duration(Steady::now().time_since_epoch()).count(); }

/// What stood_still is with what happened until `now`. It is stored before last_look: who finds
/// that fresh finds it, too.
void look(Clock::rep now) {
  const std::lock_guard lock(looking);
  const Clock::rep gap = now - last_look;
  if (gap <= 0) return;
  if (gap > kStandstill.count()) {
    stood_still += gap - kTick.count();
    went_on = now;
  }
  last_look = now;
}

}  // namespace

Clock::time_point Clock::now() noexcept {
  if (const SimulatedTime* simulated = SimulatedTime::of_this_thread()) return simulated->now();
  const rep now = steady_now();
  if (is_watched && now - last_look > kStandstill.count()) look(now);
  return time_point(duration(now - stood_still));
}

Clock::time_point Clock::after_standstill() noexcept {
  if (SimulatedTime::of_this_thread() != nullptr) return {};
  const time_point when = now();  // it may have been just now
  return went_on == 0 ? time_point() : when - duration(steady_now() - went_on);
}

class StandstillWatch::Ticker {
 public:
  Ticker() {
    {
      const std::lock_guard lock(looking);
      last_look = steady_now();
    }
    is_watched = true;
    thread_ = std::jthread([](const std::stop_token& stop) {
      std::mutex mutex;
      std::condition_variable_any never;
      std::unique_lock lock(mutex);
      while (!never.wait_for(lock, stop, kTick, [&] { return stop.stop_requested(); })) {
        look(steady_now());
      }
    });
    // A fork has no such thread.
    static const int once = ::pthread_atfork(nullptr, nullptr, [] { is_watched = false; });
    static_cast<void>(once);
  }
  ~Ticker() {
    if (is_here()) {
      is_watched = false;
    } else {
      static_cast<void>(new std::jthread(std::move(thread_)));  // there is nothing to join
    }
  }
  bool is_here() const { return ::getpid() == home_; }
  Ticker(const Ticker&) = delete;
  Ticker& operator=(const Ticker&) = delete;

 private:
  const pid_t home_ = ::getpid();
  std::jthread thread_;
};

StandstillWatch::StandstillWatch() {
  static std::mutex mutex;
  static std::weak_ptr<Ticker> living;
  const std::lock_guard lock(mutex);
  ticker_ = living.lock();
  if (ticker_ && ticker_->is_here()) return;
  ticker_ = std::make_shared<Ticker>();
  living = ticker_;
}

}  // namespace gossamer
