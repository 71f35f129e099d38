#include "gossamer/cli/train_interrupt.h"

#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstring>

namespace gossamer {
namespace {

// A signal handler can reach nothing but globals.
std::atomic<bool> interrupted = false;

void on_signal(int) { interrupted = true; }

}  // namespace

InterruptGuard::InterruptGuard(std::function<std::string()> farewell)
    : farewell_(std::move(farewell)) {
  std::signal(SIGINT, on_signal);
  std::signal(SIGTERM, on_signal);
  watcher_ = std::jthread([this](const std::stop_token& done) { watch(done); });
}

InterruptGuard::~InterruptGuard() {
  watcher_.request_stop();
  watcher_.join();
  std::signal(SIGINT, SIG_DFL);
  std::signal(SIGTERM, SIG_DFL);
}

const std::atomic<bool>& InterruptGuard::stop() const { return interrupted; }

void InterruptGuard::watch(const std::stop_token& done) const {
  using namespace std::chrono_literals;
  constexpr auto kPause = 20ms;
  constexpr auto kPatience = 1500ms;
  auto waited = 0ms;
  while (!done.stop_requested() && waited < kPatience) {
    std::this_thread::sleep_for(kPause);
    if (interrupted) waited += kPause;
  }
  if (done.stop_requested()) return;
  const std::string farewell = farewell_();
  const std::string text = farewell.empty() ? "" : "\ngossamer: " + farewell + "\n";
  [[maybe_unused]] const auto written = ::write(STDERR_FILENO, text.data(), text.size());
  ::_exit(130);
}

}  // namespace gossamer
