#include "gossamer/cli/progress.h"

#include <unistd.h>

#include "gossamer/base/units.h"

namespace gossamer {

std::string to_text(const RunProgress& p) {
  char text[96];
  std::snprintf(text, sizeof text, "step %lld/%lld  loss %.3f  %.0f ms/step",
                static_cast<long long>(p.step), static_cast<long long>(p.steps), p.loss,
                1e3 * p.step_s);
  if (p.step >= p.steps || !(p.step_s > 0)) return text;
  return std::string(text) + "  " +
         format_duration(static_cast<double>(p.steps - p.step) * p.step_s) + " left";
}

ProgressLine::ProgressLine(std::string label, std::int64_t steps)
    : ProgressLine(std::move(label), steps, {.is_terminal = ::isatty(STDERR_FILENO) == 1}) {}

ProgressLine::ProgressLine(std::string label, std::int64_t steps, ProgressOptions options)
    : label_(std::move(label)), steps_(steps), options_(options) {}

ProgressLine::~ProgressLine() {
  if (shown_ && options_.is_terminal) std::fprintf(options_.out, "\r\033[K");
}

void ProgressLine::show(std::int64_t step, double loss, double step_s) {
  const std::string text =
      label_ + "  " + to_text({.step = step, .steps = steps_, .loss = loss, .step_s = step_s});
  if (options_.is_terminal) {
    shown_ = true;
    std::fprintf(options_.out, "\r\033[K%s", text.c_str());
    return;
  }
  const auto now = std::chrono::steady_clock::now();
  if (now - last_ < options_.between) return;
  last_ = now;
  shown_ = true;
  std::fprintf(options_.out, "gossamer: %s\n", text.c_str());
}

}  // namespace gossamer
