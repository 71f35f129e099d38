#pragma once
/// How far a run is, on stderr: one line that follows it on a terminal, a line per minute
/// elsewhere.

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <string>

namespace gossamer {

/// Where a run is.
struct RunProgress {
  std::int64_t step = 0;
  std::int64_t steps = 0;
  double loss = 0;
  double step_s = 0;  ///< mean time of a step
};

/// "step 12/60  loss 5.511  15 ms/step  1.2 s left".
std::string to_text(const RunProgress& progress);

struct ProgressOptions {
  std::FILE* out = stderr;
  bool is_terminal = false;
  std::chrono::milliseconds between = std::chrono::minutes(1);  ///< lines where there is none
};

/// Writes progress as it comes; see the options.
class ProgressLine {
 public:
  /// On stderr, whatever that is.
  ProgressLine(std::string label, std::int64_t steps);
  ProgressLine(std::string label, std::int64_t steps, ProgressOptions options);
  ~ProgressLine();
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  void show(std::int64_t step, double loss, double step_s);

 private:
  std::string label_;
  std::int64_t steps_;
  ProgressOptions options_;
  std::chrono::steady_clock::time_point last_ = std::chrono::steady_clock::now();
  bool shown_ = false;
};

}  // namespace gossamer
