#include "gossamer/train/interrupt.h"

#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstring>

namespace gossamer {
namespace {

// A signal handler can reach nothing but globals.
std::atomic<bool> interrupted = false;
std::atomic<int> preempted_by = 0;
std::atomic<int> last_signal = SIGINT;
std::atomic<bool> has_grace = false;

void on_signal(int signal) {
  last_signal = signal;
  const bool is_first = preempted_by == 0 && !interrupted;
  if (signal != SIGINT && has_grace && is_first) {
    preempted_by = signal;
  } else {
    interrupted = true;
  }
}

constexpr int kSignals[] = {SIGINT, SIGTERM, SIGHUP};

}  // namespace

InterruptGuard::InterruptGuard(std::function<std::string()> farewell, double grace_s)
    : farewell_(std::move(farewell)), grace_s_(grace_s) {
  has_grace = grace_s > 0;
  for (const int signal : kSignals) {
    // Under nohup it stays ignored.
    const bool was_ignored = std::signal(signal, on_signal) == SIG_IGN;
    if (signal == SIGHUP && was_ignored) std::signal(signal, SIG_IGN);
  }
  watcher_ = std::jthread([this](const std::stop_token& done) { watch(done); });
}

InterruptGuard::~InterruptGuard() {
  watcher_.request_stop();
  watcher_.join();
  for (const int signal : kSignals) {
    if (std::signal(signal, SIG_DFL) == SIG_IGN) std::signal(signal, SIG_IGN);
  }
}

const std::atomic<bool>& InterruptGuard::stop() const { return interrupted; }

const std::atomic<int>& InterruptGuard::preempted() const { return preempted_by; }

void InterruptGuard::watch(const std::stop_token& done) const {
  using namespace std::chrono_literals;
  using Seconds = std::chrono::duration<double>;
  constexpr auto kPause = 20ms;
  constexpr auto kPatience = 1500ms;
  auto interrupted_for = 0ms;
  auto preempted_for = 0ms;
  while (!done.stop_requested() && interrupted_for < kPatience &&
         (preempted_by == 0 || Seconds(preempted_for).count() < grace_s_)) {
    std::this_thread::sleep_for(kPause);
    if (interrupted) interrupted_for += kPause;
    if (preempted_by != 0) preempted_for += kPause;
  }
  if (done.stop_requested()) return;
  const std::string farewell = farewell_();
  const std::string text = farewell.empty() ? "" : "\ngossamer: " + farewell + "\n";
  [[maybe_unused]] const auto written = ::write(STDERR_FILENO, text.data(), text.size());
  ::_exit(128 + last_signal);
}

}  // namespace gossamer
