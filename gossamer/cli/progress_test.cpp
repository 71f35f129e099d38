#include "gossamer/cli/progress.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <memory>
#include <string>

namespace gossamer {
namespace {

using namespace std::chrono_literals;

TEST(Progress, SaysHowLongItWillTake) {
  EXPECT_EQ(to_text(RunProgress{.step = 12, .steps = 60, .loss = 5.511, .step_s = 0.5}),
            "step 12/60  loss 5.511  500 ms/step  24 s left");
  EXPECT_EQ(to_text(RunProgress{.step = 1, .steps = 7201, .loss = 1, .step_s = 1}),
            "step 1/7201  loss 1.000  1000 ms/step  2 h left");
  EXPECT_EQ(to_text(RunProgress{.step = 60, .steps = 60, .loss = 1, .step_s = 0.5}),
            "step 60/60  loss 1.000  500 ms/step");
}

/// What a line of progress with these options writes for steps 1 and 2.
std::string written(ProgressOptions options) {
  char* text = nullptr;
  std::size_t size = 0;
  options.out = ::open_memstream(&text, &size);
  {
    ProgressLine line("ring", 4, options);
    line.show(1, 2, 1);
    line.show(2, 2, 1);
  }
  std::fclose(options.out);
  const std::unique_ptr<char, void (*)(void*)> owner(text, std::free);
  return {text, size};
}

TEST(Progress, FollowsTheRunOnATerminalAndComesByTheMinuteElsewhere) {
  const std::string line = "ring  step 2/4  loss 2.000  1000 ms/step  2 s left";
  EXPECT_NE(written({.is_terminal = true}).find("\r\033[K" + line), std::string::npos);
  EXPECT_EQ(written({}), "");
  const std::string each = written({.between = 0ms});
  EXPECT_EQ(std::count(each.begin(), each.end(), '\n'), 2);
  EXPECT_NE(each.find("gossamer: " + line + "\n"), std::string::npos);
}

}  // namespace
}  // namespace gossamer
