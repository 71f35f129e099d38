#pragma once
/// Ctrl-C: asks the workers to stop, and leaves within two seconds even if they cannot.

#include <atomic>
#include <functional>
#include <string>
#include <thread>

namespace gossamer {

/// While it lives, SIGINT and SIGTERM set `stop()`. When the program is still there 1.5 s later, it
/// prints what `farewell` says, unless that is empty, and exits with 130; files are written aside
/// and renamed, so nothing is lost.
class InterruptGuard {
 public:
  explicit InterruptGuard(std::function<std::string()> farewell);
  ~InterruptGuard();
  InterruptGuard(const InterruptGuard&) = delete;
  InterruptGuard& operator=(const InterruptGuard&) = delete;

  const std::atomic<bool>& stop() const;

 private:
  void watch(const std::stop_token& done) const;

  std::function<std::string()> farewell_;
  std::jthread watcher_;
};

}  // namespace gossamer
