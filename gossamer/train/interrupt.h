#pragma once
/// Ctrl-C: asks the workers to stop, and leaves within two seconds even if they cannot.

#include <atomic>
#include <functional>
#include <string>
#include <thread>

namespace gossamer {

/// While it lives, SIGINT sets `stop()`. SIGTERM and SIGHUP set `preempted()`, where there is a
/// grace, else `stop()` as well; so does a second signal. A SIGHUP that is ignored, as under nohup,
/// stays so. When the program is still there 1.5 s after the former, or when the grace is over
/// after the latter, it prints what `farewell` says, unless that is empty, and exits with 128 and
/// the number of the signal; files are written aside and renamed, so nothing is lost.
class InterruptGuard {
 public:
  /// `grace_s` is at least 0.
  explicit InterruptGuard(std::function<std::string()> farewell, double grace_s = 0);
  ~InterruptGuard();
  InterruptGuard(const InterruptGuard&) = delete;
  InterruptGuard& operator=(const InterruptGuard&) = delete;

  const std::atomic<bool>& stop() const;
  /// The number of the signal; 0: none has come.
  const std::atomic<int>& preempted() const;

 private:
  void watch(const std::stop_token& done) const;

  std::function<std::string()> farewell_;
  double grace_s_;
  std::jthread watcher_;
};

}  // namespace gossamer
